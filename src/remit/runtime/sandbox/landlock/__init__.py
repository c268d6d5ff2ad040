"""A sandbox for machines without bubblewrap: rules of the kernel for each process, no namespaces.

Three processes for each program. The *keeper* (`keeper`) is what the worker starts; it makes a
*guard*, and the guard the program. Landlock (`rules`) says which files the program reaches and
whom it signals; a filter (`calls`) closes what Landlock does not know of; a few calls that the
filter cannot judge are carried out by the guard (`favours`). When the program ends, or the keeper
or the worker does, one signal of the guard ends all that the program started, wherever it went.
"""
