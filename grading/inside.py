"""The process in which student code runs. Nothing here can be trusted, and nothing here knows an answer.

One zygote imports the heavy packages once and never runs a line of a student's. For every submission it forks a child,
which moves into a sandbox of its own, gives up what rights it has, runs the cells that it is sent, and answers
questions about what they defined. The judge talks to the zygote over one socket ("fork", with the child's socket;
"end") and to the child over another.

    python inside.py CONTROL_FD UID    started by grading/sandbox.py, with a folder of helpers as working directory;
                                       UID: whom a zygote that is root turns into at once, 0: nobody else
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

import kernel
import namespaces
import wire

HELPERS = os.path.dirname(os.path.abspath(__file__))


def main(control_fd, uid):
    control = socket.socket(fileno=control_fd)
    if uid:
        _become(uid)
    preload()
    _send(control, {"ready": True})
    children = {}
    while True:
        message, fds, _, _ = socket.recv_fds(control, 65536, 1)
        if not message:
            break
        order = json.loads(message)
        if order["do"] == "fork":
            try:
                holder = namespaces.Holder(order["bwrap"]) if order["bwrap"] else None
            except (OSError, RuntimeError, ValueError) as error:
                os.close(fds[0])
                _send(control, {"error": str(error)})
                continue
            pid = os.fork()
            if pid == 0:
                control.close()
                _child(fds[0], order, holder)
            os.close(fds[0])
            children[pid] = holder
            _send(control, {"pid": pid})
        elif order["do"] == "end" and order["pid"] in children:
            _send(control, _end(order["pid"], children.pop(order["pid"])))


def preload():
    """What notebooks import, once for all children. No tensor is computed here: threads do not survive a fork."""
    import gymnasium  # noqa: F401
    import IPython.core.inputtransformer2  # noqa: F401
    import matplotlib.pyplot
    import torch
    import torch._dynamo  # the first optimizer imports it, which takes longer than judging a submission

    import rl_tests
    torch.set_num_threads(1)
    matplotlib.pyplot.switch_backend("agg")
    for path in sorted(os.listdir(os.path.join(HELPERS, "rl_checks"))):
        if path.endswith(".py"):
            __import__("rl_checks." + path[:-3])
    for name in ("rl_gui", "rl_envs", "probe_envs"):
        with contextlib.suppress(ImportError):
            __import__(name)
    assert rl_tests.run_tests


def _end(pid, holder):
    """Kills what is left of a child and says how it ended."""
    if holder:
        holder.end()  # with everything that the child may have started; the child's own parent then reports
    else:
        _kill_group(pid)
    _, status, usage = os.wait4(pid, 0)
    return {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            "cpu_s": usage.ru_utime + usage.ru_stime, "max_rss_kb": usage.ru_maxrss}


def _kill_group(pid):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _child(fd, order, holder):
    questions = socket.socket(fileno=fd)
    ours = True  # until a line of the student's has run, a failure is a fault of the sandbox
    try:
        if holder:
            namespaces.die_with_parent()
            namespaces.enter(holder.init)
            inner = os.fork()
            if inner:  # the outer one only waits: whoever enters a pid namespace stays outside, its children are inside
                questions.close()
                _, status = os.waitpid(inner, 0)
                os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        os.setsid()
        _give_up_rights(order, fd)
        running = kernel.Kernel(fd, HELPERS) if order["full"] else None
        _send(questions, {"here": True})
        ours = False
        _serve(questions, running)
    except BaseException as error:
        with contextlib.suppress(Exception):
            _send(questions, {"fault" if ours else "broken": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _become(uid):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _give_up_rights(order, keep):
    os.chdir(order["folder"])
    os.environ.update(HOME=order["folder"], TMPDIR=order["folder"], MPLCONFIGDIR=order["folder"])
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, 4096)
    limits = order["limits"]
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", limits["file_bytes"])
    _limit("RLIMIT_NOFILE", limits["files"])
    _limit("RLIMIT_CPU", limits["cpu_s"])
    if sys.platform == "linux":
        with open("/proc/self/statm") as statm:
            mapped = int(statm.read().split()[0]) * resource.getpagesize()
        _limit("RLIMIT_AS", mapped + limits["memory_bytes"])
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")  # if the machine runs out of memory, this process goes first
    if order["uid"]:
        _become(order["uid"])
    if order["uid"] or order["bwrap"]:  # it counts what this uid has in this sandbox; without one, all of the user's
        _limit("RLIMIT_NPROC", limits["processes"])
    if order["bwrap"]:
        namespaces.drop_capabilities()
        namespaces.filter_system_calls(sockets=order["full"])


def _limit(name, value):
    # A platform may lack a limit, or allow less already.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def questions(fd, assignment, namespace):
    """Answers questions about what `namespace` defines, until the judge has no more."""
    line = socket.socket(fileno=fd)
    _answer_all(line, line.makefile("rb"), assignment, namespace)


def _serve(questions, running):
    from rl_checks import engine
    # Unbuffered: what is read ahead here would be missing in the kernel that reads on.
    reader = questions.makefile("rb", buffering=0 if running else -1)
    job = wire.loads(reader.readline())
    if running:
        running.serve(job["assignment"], job["cells"], lambda message: _send(questions, message))
        return
    namespace = _namespace()
    for cell_id, source in job["cells"]:
        _send(questions, {"at": cell_id})
        _, trouble = engine.attempt(lambda: _run(source, f"<cell {cell_id}>", namespace))  # noqa: B023
        _send(questions, {"ran": cell_id, "status": trouble.status if trouble else "passed",
                          "error": trouble.error if trouble else "", "place": trouble.place if trouble else ""})
    _answer_all(questions, reader, job["assignment"], namespace)


def _answer_all(questions, reader, assignment, namespace):
    import rl_tests
    from rl_checks import engine
    pieces = rl_tests.observers_of(assignment)
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
    main(int(sys.argv[1]), int(sys.argv[2]))
