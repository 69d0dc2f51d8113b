"""Into a bubblewrap sandbox from outside, for a process that has imported torch already, and down to no rights at all.

The zygote keeps its imports, bubblewrap makes the sandbox; a fork of the zygote moves into it by setns(2) before a line
of student code runs. It runs inside (with grading/inside.py), so it imports nothing of the course.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import subprocess
import sys

# linux/sched.h, linux/nsfs.h, linux/prctl.h, linux/capability.h
NAMESPACES = {"user": 0x10000000, "mnt": 0x00020000, "net": 0x40000000, "ipc": 0x08000000, "uts": 0x04000000,
              "cgroup": 0x02000000, "pid": 0x20000000}
NS_GET_PARENT = 0xB702
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT, CLEAR_ALL = 1, 38, 24, 47, 4
CAPABILITIES_V3 = 0x20080522
# Nothing in a notebook needs these; each is a way to reach further, or to use memory that nobody counts.
FORBIDDEN = (
    "acct", "add_key", "bpf", "chroot", "clone3", "delete_module", "fanotify_init", "finit_module", "fsconfig",
    "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm",
    "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "memfd_create", "memfd_secret",
    "mount", "mount_setattr", "move_mount", "move_pages", "mq_open", "msgget", "name_to_handle_at", "nfsservctl",
    "open_by_handle_at", "open_tree", "perf_event_open", "personality", "pidfd_getfd", "pivot_root",
    "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot", "request_key",
    "semget", "setns", "settimeofday", "shmget", "socket", "swapoff", "swapon", "syslog", "umount", "umount2",
    "unshare", "userfaultfd", "vhangup")
CLONE_NEW = 0x7E020000  # any new namespace


class Holder:
    """A running bubblewrap that keeps one sandbox open. raises RuntimeError with what bubblewrap said."""

    def __init__(self, command):
        info_read, info_write = os.pipe()
        # `cat` ends when this process does, and the whole sandbox with it.
        self._process = subprocess.Popen([*command, "--info-fd", str(info_write), "/bin/sh", "-c", "echo ready; exec cat"],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         pass_fds=[info_write])
        os.close(info_write)
        with os.fdopen(info_read) as info:
            ready = self._process.stdout.readline()
            if not ready:
                raise RuntimeError(f"bubblewrap: {self._process.stderr.read().decode(errors='replace').strip()[:300]}")
            self.init = json.loads(info.read())["child-pid"]

    def end(self):
        """Kills every process in the sandbox: the first one takes all others with it."""
        for kill in (lambda: os.kill(self.init, 9), self._process.kill):
            with contextlib.suppress(ProcessLookupError):
                kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            pipe.close()


def enter(pid):
    """Moves this process, which has one thread, into the namespaces of `pid`; its next child is in the pid namespace."""
    fds = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in NAMESPACES}
    parent = fcntl.ioctl(fds["user"], NS_GET_PARENT)
    # With --disable-userns the sandbox's user namespace lies in another one, which owns all the rest.
    nested = os.fstat(parent).st_ino != os.stat("/proc/self/ns/user").st_ino
    _setns(parent if nested else fds["user"], NAMESPACES["user"])
    for name, kind in NAMESPACES.items():
        if name != "user":
            _setns(fds[name], kind)
    if nested:
        _setns(fds["user"], NAMESPACES["user"])
    for fd in (*fds.values(), parent):
        os.close(fd)


def die_with_parent():
    _LIBC.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)


def drop_capabilities():
    """No capability is left, and no program that is started can gain one."""
    _check(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _LIBC.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
    for capability in range(64):
        _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_V3, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()))


def filter_system_calls(sockets=False):
    """The second layer. Returns False where libseccomp or pyseccomp is missing: namespaces hold without it.

    sockets   a Jupyter kernel talks to itself over the loopback, the only network in the sandbox
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError):
        return False
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in [name for name in FORBIDDEN if not (sockets and name == "socket")]:
        number = errno.ENOSYS if name == "clone3" else errno.EPERM  # with ENOSYS libc falls back to clone
        arguments = [pyseccomp.Arg(0, pyseccomp.NE, 1)] if name == "socket" else []  # Unix sockets stay: asyncio uses them
        try:
            rules.add_rule(pyseccomp.ERRNO(number), name, *arguments)
        except (OSError, ValueError, RuntimeError):
            continue  # this machine has no such call
    for bit in range(32):
        if CLONE_NEW >> bit & 1:
            rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, 1 << bit, 1 << bit))
    rules.load()
    return True


def _setns(fd, kind):
    _check(_LIBC.setns(fd, kind))


def _check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
