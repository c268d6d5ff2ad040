"""A sandbox for machines without bubblewrap: rules of the kernel for each process, no namespaces.

Three processes for each program. The worker starts the *keeper* (`supervisor`); it starts a
*guard*, and the guard the program. Landlock (`rules`) says which files the program reaches and
whom it signals; a filter (`calls`) refuses the calls that Landlock does not know; the guard carries
out the few that the filter cannot judge (`syscall_broker`). When the program, the keeper or the
worker ends, one signal of the guard (`reaper`) ends all that the program started, wherever it went.
"""
