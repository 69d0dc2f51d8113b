"""The process in which student code runs. Nothing here can be trusted, and nothing here knows an answer.

One zygote imports the heavy packages once. For every submission it forks a child, which gives up what rights it has,
runs the cells that it is sent, and answers questions about what they defined. The judge talks to the zygote over one
socket ("fork", with the child's socket; "kill") and to the child over another.

    python inside.py CONTROL_FD        started by grading/sandbox.py, with a folder of helpers as working directory
"""

import builtins
import contextlib
import json
import linecache
import os
import resource
import signal
import socket
import sys
import types

import wire


def main(control_fd):
    control = socket.socket(fileno=control_fd)
    _preload()
    _send(control, {"ready": True})
    children = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, 65536, 1)
        if not message:
            break
        order = json.loads(message)
        if order["do"] == "fork":
            pid = os.fork()
            if pid == 0:
                control.close()
                _child(socket.socket(fileno=fds[0]), order)
            os.close(fds[0])
            children.add(pid)
            _send(control, {"pid": pid})
        elif order["do"] == "end" and order["pid"] in children:
            children.discard(order["pid"])
            _send(control, _end(order["pid"]))


def _preload():
    """What notebooks import, once for all children. No tensor is computed here: threads do not survive a fork."""
    import gymnasium  # noqa: F401
    import IPython.core.inputtransformer2  # noqa: F401
    import matplotlib.pyplot
    import torch

    import rl_tests
    torch.set_num_threads(1)
    matplotlib.pyplot.switch_backend("agg")
    for path in sorted(os.listdir("rl_checks")):
        if path.endswith(".py"):
            __import__("rl_checks." + path[:-3])
    for name in ("rl_gui", "rl_envs", "probe_envs"):
        with contextlib.suppress(ImportError):
            __import__(name)
    assert rl_tests.run_tests


def _end(pid):
    """Kills what is left of a child and says how it ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            "cpu_s": usage.ru_utime + usage.ru_stime, "max_rss_kb": usage.ru_maxrss}


def _child(questions, order):
    try:
        os.setsid()
        _give_up_rights(order)
        _serve(questions)
    except BaseException as error:
        with contextlib.suppress(Exception):
            _send(questions, {"broken": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _give_up_rights(order):
    os.chdir(order["folder"])
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    limits = order["limits"]
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", limits["file_bytes"])
    _limit("RLIMIT_NOFILE", limits["files"])
    _limit("RLIMIT_CPU", limits["cpu_s"])
    if sys.platform == "linux":
        with open("/proc/self/statm") as statm:
            mapped = int(statm.read().split()[0]) * resource.getpagesize()
        _limit("RLIMIT_AS", mapped + limits["memory_bytes"])
    if order["uid"]:
        os.setgroups([])
        os.setgid(order["uid"])
        os.setuid(order["uid"])
        _limit("RLIMIT_NPROC", limits["processes"])  # counts what this uid has; each submission has its own


def _limit(name, value):
    # A platform may lack a limit, or allow less already.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def _serve(questions):
    reader = questions.makefile("rb")
    job = wire.loads(reader.readline())
    import rl_tests
    from rl_checks import engine
    pieces = rl_tests.observers_of(job["assignment"])
    namespace = _namespace()
    for cell_id, source in job["cells"]:
        _send(questions, {"at": cell_id})
        _, trouble = engine.attempt(lambda: _run(source, f"<cell {cell_id}>", namespace))  # noqa: B023
        _send(questions, {"ran": cell_id, "status": trouble.status if trouble else "passed",
                          "error": trouble.error if trouble else "", "place": trouble.place if trouble else ""})
    for line in reader:
        question = wire.loads(line)
        _send(questions, {"nonce": question["nonce"], **_answer(engine, pieces[question["piece"]], question, namespace)})


def _answer(engine, piece, question, namespace):
    target = namespace.get(piece.target or piece.name, engine)
    if target is engine:
        return {"status": engine.NOT_WRITTEN, "error": f"{piece.target or piece.name} is not defined", "place": ""}
    try:
        seen = engine.look(piece, target, wire.unpack(question["inputs"]))
        quantities = wire.pack(seen.quantities)
    except engine.Skip:
        return {"status": "skipped"}
    except wire.Refused as error:
        return {"status": engine.FAILED, "error": f"{piece.name}: {error}", "place": ""}
    return {"status": seen.status, "quantities": quantities, "error": seen.error[:2000], "place": seen.place[:500]}


def _namespace():
    """A module for the cells to run in: dataclasses and pickles look theirs up in sys.modules."""
    module = types.ModuleType("notebook")
    sys.modules["notebook"] = module
    shell = _Shell()
    module.__dict__.update(get_ipython=lambda: shell, display=lambda *objects, **options: None)
    builtins.input = lambda prompt="": ""  # nobody is there to answer
    return module.__dict__


def _run(source, filename, namespace):
    from IPython.core.inputtransformer2 import TransformerManager
    source = TransformerManager().transform_cell(source)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)


class _Shell:
    """Stands in for IPython: magics and shell commands do nothing."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


def _send(sock, message):
    sock.sendall(wire.dumps(message))


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main(int(sys.argv[1]))
