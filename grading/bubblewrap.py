"""The command lines of bubblewrap: what a process that runs student code sees of this machine.

No network, its own process ids, the system and Python read-only, a small /tmp of its own, an empty environment, and
nothing else: no home folders, no course, no other submissions. See docs/instructors.md for what this promises.
"""

import functools
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

TMP_BYTES, SHM_BYTES = 64 * 2**20, 8 * 2**20
WORK = "/tmp/work"  # the only place to write, with all of /tmp
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
          "/etc/alternatives", "/etc/localtime", "/etc/fonts")


def missing():
    """Why bubblewrap cannot be used here and what to do, "" if it can. It is tried, not only looked for."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux: grade on a Linux machine, or in a virtual one"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed: apt install bubblewrap (Fedora: dnf install bubblewrap)"
    trial = [*_unshare(), *_view(()), "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        done = subprocess.run(trial, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start ({error})"
    if done.returncode:
        return (f"bubblewrap does not work here ({done.stderr.strip()[:200]}): user namespaces must be allowed "
                "(sysctl kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0; "
                "in a container, run it with --security-opt seccomp=unconfined, or grade outside of it)")
    return ""


def child(folder):
    """bwrap and its options for one submission; a command follows. `folder` is shown read-only."""
    return [*_unshare(), "--die-with-parent", "--new-session", "--hostname", "sandbox", "--uid", "1000", "--gid", "1000",
            "--clearenv", "--size", str(TMP_BYTES), "--tmpfs", "/tmp", *_view((folder,)), "--proc", "/proc", "--dev", "/dev",
            "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--dir", WORK, "--remount-ro", "/"]


def zygote(folder):
    """bwrap and its options for the zygote of a grader that is root: it gives up root inside, and can still read the
    Python that lies in a folder which only root may enter. [] for every other grader."""
    if os.getuid() != 0:
        return []
    return ["bwrap", "--die-with-parent", "--perms", "1777", "--tmpfs", "/tmp", *_view((folder,)),
            "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]


def _unshare():
    options = ["--unshare-user", "--unshare-all"]
    return ["bwrap", *options, "--disable-userns"] if _has("--disable-userns") else ["bwrap", *options]


@functools.cache
def _has(option):
    """Does this bubblewrap know the option? Ubuntu 22.04's does not know --disable-userns; seccomp says it again."""
    return option in subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout


def _view(folders):
    """Options that show the system, this Python and the given folders, read-only, at the paths that they have."""
    options, made = [], {"/", "/tmp"}
    pythons = [sys.base_prefix, sys.prefix, *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        pythons.append(site.getusersitepackages())
    for path in dict.fromkeys([*SYSTEM, *pythons, *map(str, folders)]):
        if os.path.islink(path) and path in SYSTEM:
            options += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path) and not any(Path(path).is_relative_to(p) for p in ("/usr", *made - {"/", "/tmp"})):
            for parent in reversed(Path(path).parents):
                if str(parent) not in made:
                    options += ["--perms", "0755", "--dir", str(parent)]  # bubblewrap's own would be closed to others
            options += ["--ro-bind", path, path]
            made |= {path} if path not in SYSTEM else set()
        elif path == "/usr":
            options += ["--ro-bind", path, path]
    return options
