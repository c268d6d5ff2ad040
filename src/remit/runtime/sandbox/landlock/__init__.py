"""A sandbox for machines without bubblewrap: rules of the kernel for each process, no namespaces.

Each program has two supervisors. The worker starts the *keeper* (`supervisor`), the keeper a
*guard*, and the guard the program. Landlock (`rules`) restricts files and signals; a seccomp filter
(`calls`) refuses calls that Landlock does not cover; the guard performs the few calls that the
filter cannot judge (`syscall_broker`). When the program, the keeper or the worker ends, one signal
of the guard kills all processes that the program started, in whichever session.
"""
