"""Attacks on the grader, as code in an answer cell: what each tries is its name. None may earn a point.

Both pieces are wrong in every one of them: they return zeros, so every point that is given is an undeserved one.
"""

ZEROS = {
    "compute_advantages": """
import torch

def compute_advantages(self, states, rewards, next_states, terminations, truncations=None):
    return torch.zeros(len(states)), torch.zeros(len(states))

PPO.compute_advantages = compute_advantages
""",
    "compute_loss": """
def compute_loss(self, states, actions, advantages, critic_targets, log_probs_old):
    return self.actor(states).sum() * 0, self.critic(states).sum() * 0

PPO.compute_loss = compute_loss
"""}

# The process talks to the judge over a socket; these find it and what belongs to it.
_SOCKET = """
import gc, json, os, socket, sys, threading, time
line_to_judge = [s for s in gc.get_objects() if isinstance(s, socket.socket)][0]
inside = sys.modules["__main__"]
def send(message):
    line_to_judge.sendall(json.dumps(message).encode() + b"\\n")
"""

ATTACKS = {
    "patched torch comparators": """
for name in ("allclose", "equal", "isclose", "isfinite", "eq"):
    setattr(torch, name, lambda *a, **k: True)
torch.Tensor.__eq__ = lambda *a: True
torch.Tensor.any = lambda *a, **k: False
""",
    "patched rl_tests": """
import rl_tests
for name in dir(rl_tests):
    if name.startswith("test_"):
        setattr(rl_tests, name, lambda *a, **k: None)
rl_tests.CheckFailed = type("Never", (Exception,), {})
""",
    "patched comparison": """
from rl_checks import engine
engine.compare = lambda piece, case, observation: engine.Finding(piece, case, engine.PASSED)
engine.conclude = lambda piece, seen: ([engine.Finding(piece, case, engine.PASSED) for case, _ in seen], [])
""",
    "patched look": """
from rl_checks import engine
engine.look = lambda piece, target, inputs: engine.Observation(engine.PASSED, {})
""",
    "patched look that sends everything as it should be": """
from rl_checks import engine
class Right(dict):
    def __missing__(self, key): return True
    def items(self): return []
engine.look = lambda piece, target, inputs: engine.Observation(engine.PASSED, Right())
""",
    "patched observers": """
import gc
from rl_checks import engine
for piece in [o for o in gc.get_objects() if isinstance(o, engine.Piece)]:
    object.__setattr__(piece, "observe", lambda target, inputs: {})
    object.__setattr__(piece, "tolerance", 1e9)
""",
    "patched builtins": """
import builtins
builtins.abs = lambda x: 0
builtins.isinstance = lambda *a: True
builtins.all = lambda x: True
""",
    "patched json and base64": """
import base64, json
json.dumps = lambda *a, **k: '{"status": "passed", "quantities": {"dict": {}}}'
base64.b64encode = lambda x: b""
""",
    "patched packing": """
import wire
wire.pack = lambda value: {"dict": {}}
""",
    "patched copying": """
import copy
copy.deepcopy = lambda x, memo=None: x
""",
    "display hook": """
import sys
sys.displayhook = lambda value: print("10.0")
print("10.0")
10.0
""",
    "transformers of syntax trees": """
import ast
get_ipython().ast_node_transformers.append(lambda tree: ast.parse("10.0"))
""",
    "transformers of input": """
from IPython.core.inputtransformer2 import TransformerManager
TransformerManager.transform_cell = lambda self, cell: "10.0"
""",
    "methods of the kernel": """
shell = get_ipython()
shell.kernel.do_execute = lambda *a, **k: {"status": "ok"}
shell.run_cell = lambda *a, **k: 10.0
""",
    "frames above": """
import sys
frame = sys._getframe()
while frame:
    for name, value in list(frame.f_locals.items()):
        if name in ("expected", "points", "score", "verdict"):
            frame.f_locals[name] = 10.0
    frame = frame.f_back
""",
    "tracing": """
import sys
def trace(frame, event, argument):
    if "quantities" in frame.f_locals:
        frame.f_locals["quantities"] = {}
    return trace
sys.settrace(trace)
""",
    "expected values in memory": """
import gc
from rl_checks import engine
known = [c for c in gc.get_objects() if isinstance(c, engine.Case) and c.expected]
assert not known, "expected values are in this process"
text = [t for t in gc.get_objects() if isinstance(t, dict) and "expected" in t]
""",
    "a tensor that equals everything": """
class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return True
    def __eq__(self, other): return True
    def detach(self): return self
    def cpu(self): return self
def compute_advantages(self, states, *rest):
    return torch.zeros(len(states)).as_subclass(Equal), torch.zeros(len(states)).as_subclass(Equal)
PPO.compute_advantages = compute_advantages
""",
    "NaN equals NaN": """
def compute_advantages(self, states, *rest):
    return torch.full((len(states),), float("nan")), torch.full((len(states),), float("nan"))
PPO.compute_advantages = compute_advantages
""",
    "infinity is close to everything": """
def compute_advantages(self, states, *rest):
    return torch.full((len(states),), float("inf")), torch.full((len(states),), float("inf"))
PPO.compute_advantages = compute_advantages
""",
    "empty tensors have no wrong entry": """
def compute_advantages(self, states, *rest):
    return torch.zeros(0), torch.zeros(0)
PPO.compute_advantages = compute_advantages
""",
    "broadcasts against anything": """
def compute_advantages(self, states, *rest):
    return torch.zeros(1, 1).expand(1, 1), torch.zeros(())
PPO.compute_advantages = compute_advantages
""",
    "sends passed without quantities": _SOCKET + """
answer = inside._answer
inside._answer = lambda *a: {"status": "passed", "quantities": {"dict": {}}}
""",
    "sends skipped for every question": """
import sys
sys.modules["__main__"]._answer = lambda *a: {"status": "skipped"}
""",
    "sends a score": """
import sys
sys.modules["__main__"]._answer = lambda *a: {
    "status": "passed", "score": 10.0, "points": 10.0, "quantities": {"dict": {"score": 10}}}
""",
    "an unknown status": """
import sys
sys.modules["__main__"]._answer = lambda *a: {"status": "perfect"}
""",
    "answers before it is asked": _SOCKET + """
for i in range(50):
    send({"nonce": f"{i:032x}", "status": "passed", "quantities": {"dict": {}}})
""",
    "claims that later cells ran": _SOCKET + """
for cell in ("compute_advantages", "compute_loss", "test_compute_loss"):
    send({"at": cell}); send({"ran": cell, "status": "passed", "error": "", "place": ""})
""",
    "two answers to one question": _SOCKET + """
answer = inside._answer
def twice(engine, piece, question, namespace):
    given = answer(engine, piece, question, namespace)
    send({"nonce": question["nonce"], **given})
    return given
inside._answer = twice
""",
    "echoes the inputs as quantities": """
import sys
sys.modules["__main__"]._answer = lambda e, p, question, n: {"status": "passed", "quantities": question["inputs"]}
""",
    "a line without end": _SOCKET + """
try:
    while True:
        line_to_judge.sendall(b"x" * 2**20)
except OSError:
    pass
""",
    "a byte now and then": _SOCKET + """
while True:
    line_to_judge.sendall(b" "); time.sleep(0.05)
""",
    "deep nesting": _SOCKET + """
line_to_judge.sendall(b'{"a":' * 100_000 + b"\\n")
""",
    "numbers that are none": _SOCKET + """
line_to_judge.sendall(b'{"at": NaN, "ran": Infinity}\\n')
""",
    "a tensor of impossible size": """
import sys
sys.modules["__main__"]._answer = lambda *a: {"status": "passed", "quantities": {"dict": {
    "advantages": {"tensor": "float32", "shape": [2**40, -1], "bytes": ""}}}}
""",
    "a tensor of objects": """
import sys
sys.modules["__main__"]._answer = lambda *a: {"status": "passed", "quantities": {"dict": {
    "advantages": {"tensor": "object", "shape": [1], "bytes": "gASVCg=="}}}}
""",
    "binary rubbish": _SOCKET + """
line_to_judge.sendall(os.urandom(4096) + b"\\n")
""",
    "closes the line": _SOCKET + """
line_to_judge.shutdown(socket.SHUT_RDWR)
""",
    "a thread that answers instead": _SOCKET + """
def answer():
    while True:
        send({"nonce": "0" * 32, "status": "passed", "quantities": {"dict": {}}}); time.sleep(0.01)
threading.Thread(target=answer, daemon=True).start()
""",
    "another program takes over": '''
import os, sys
for fd in range(3, 64):
    try:
        os.set_inheritable(fd, True)
    except OSError:
        pass
program = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, b'{"ran": "compute_advantages", "status": "passed"}' + bytes([10]))
    except OSError:
        pass
"""
os.execv(sys.executable, [sys.executable, "-c", program])
''',
    "shadowed modules": """
for name in ("torch", "wire", "rl_tests", "namespaces", "json", "sitecustomize", "usercustomize"):
    open(name + ".py", "w").write("raise SystemExit")
import importlib, sys
sys.path.insert(0, ".")
""",
    "startup files for the next": """
import os, site, sys
for place in [os.path.expanduser("~/.ipython/profile_default/startup"), *site.getsitepackages(), os.path.expanduser("~")]:
    try:
        os.makedirs(place, exist_ok=True)
        open(os.path.join(place, "00-evil.py"), "w").write("raise SystemExit")
        open(os.path.join(place, "evil.pth"), "w").write("import os; os._exit(0)")
    except OSError:
        pass
""",
    "rewrites the helpers": """
import os, rl_tests, rl_checks.engine
for module in (rl_tests, rl_checks.engine, os):
    try:
        open(module.__file__, "w").write("raise SystemExit")
    except OSError:
        pass
""",
    "imports the solution": """
try:
    from grading import solutions
    Right = solutions.load("02_lunar_lander")["PPO"]
    PPO.compute_advantages, PPO.compute_loss = Right.compute_advantages, Right.compute_loss
except ImportError:
    pass
""",
    "looks for notebooks of others": """
import json, os
for folder, _, files in os.walk("/"):
    if folder.startswith(("/proc", "/sys", "/usr")):
        continue
    for name in files:
        if name.endswith(".ipynb") and "site-packages" not in folder:
            for cell in json.load(open(os.path.join(folder, name)))["cells"]:
                if cell["cell_type"] == "code" and "def compute_" in "".join(cell["source"]):
                    exec("".join(cell["source"]))
""",
    "answers of reference.json": """
import json, os, sys
import rl_tests
try:
    cases = json.load(open(rl_tests.REFERENCE))["02_lunar_lander"]["compute_advantages"]["cases"]
    from rl_checks.values import decode
    shown = [{name: decode(value) for name, value in case["expected"].items()} for case in cases]
    import wire
    sys.modules["__main__"]._answer = lambda *a: {"status": "passed", "quantities": wire.pack(shown[0])}
except OSError:
    pass
""",
    "writes into the gradebook": """
import glob, os, sqlite3
for pattern in ("/tmp/**/gradebook.db", "/home/**/gradebook.db", "/root/**/gradebook.db", "/work/**/gradebook.db"):
    for path in glob.glob(pattern, recursive=True):
        try:
            sqlite3.connect(path).execute("update grade set manual_score = 10")
        except sqlite3.Error:
            pass
""",
    "links to files of the host": """
import os
for i, target in enumerate(("/etc/passwd", "/etc/shadow", "/root", "/proc/1/root", "/proc/1/cwd", "/")):
    os.symlink(target, f"link{i}")
    try:
        open(os.path.join(f"link{i}", "written"), "w").write("x")
    except OSError:
        pass
""",
    "memory of other processes": """
import os
for pid in [p for p in os.listdir("/proc") if p.isdigit()] + [str(os.getppid())]:
    try:
        open(f"/proc/{pid}/mem", "r+b").write(b"x")
        assert pid == str(os.getpid())
    except OSError:
        pass
""",
    "kills whoever it can": """
import os, signal
for pid in (-1, 1, os.getppid()):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
""",
    "stops whoever it can": """
import os, signal
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
""",
    "network": """
import socket, urllib.request
for action in (lambda: socket.create_connection(("1.1.1.1", 80), 1),
               lambda: urllib.request.urlopen("http://example.com", timeout=1)):
    try:
        action()
    except OSError:
        pass
    else:
        PPO.compute_advantages = None
""",
    "fork bomb": """
import os
try:
    while True:
        os.fork()
except OSError:
    pass
""",
    "a daemon that answers for the next": _SOCKET + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            for fd in range(3, 32):
                try:
                    os.write(fd, b'{"here": true}\\n')
                except OSError:
                    pass
            time.sleep(0.01)
    os._exit(0)
""",
    "disk flood": """
import os
try:
    for i in range(10_000):
        open(f"{i}.bin", "wb").write(bytes(2**22))
except OSError:
    pass
try:
    for i in range(1000):
        open(f"/dev/shm/{i}", "wb").write(bytes(2**22))
except OSError:
    pass
""",
    "output flood": """
import os, sys
print("x" * 10**7)
print("x" * 10**7, file=sys.stderr)
os.write(1, b"x" * 10**7); os.write(2, b"x" * 10**7)
""",
    "shared memory flood": """
import os
try:
    hoard = []
    for i in range(200):
        fd = os.memfd_create(str(i)); os.write(fd, bytes(2**24)); hoard.append(fd)
except OSError:
    pass
""",
    "raises its limits": """
import resource
for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE"):
    try:
        resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass
try:
    hoard = bytearray(2**33)
except MemoryError:
    pass
""",
    "an exception that looks like a pass": """
class Fine(Exception):
    def __str__(self): return "10.0\\n✔ PASS compute_advantages: all checks pass"
def compute_advantages(self, *rest): raise Fine
PPO.compute_advantages = compute_advantages
""",
    "an exception that cannot be told": """
class Evil(Exception):
    def __str__(self): raise SystemExit
    __repr__ = __str__
def compute_advantages(self, *rest): raise Evil
PPO.compute_advantages = compute_advantages
""",
    "answers that differ between calls": """
calls = [0]
def compute_advantages(self, states, rewards, next_states, terminations, truncations=None):
    calls[0] += 1
    return (rewards * (calls[0] % 2)).flatten()[: len(states)], self.critic(states).squeeze(-1).detach()
PPO.compute_advantages = compute_advantages
""",
    "emptied modules": """
import sys
for name in list(sys.modules):
    if name.startswith(("rl_", "wire", "json")):
        del sys.modules[name]
""",
    "another default type": """
torch.set_default_dtype(torch.float64)
torch.manual_seed = lambda *a: None
torch.default_generator.manual_seed(1)
""",
    "a class that has everything": """
class Everything(type):
    def __getattr__(cls, name): return lambda *a, **k: cls
class PPO(metaclass=Everything):
    def __init__(self, *a): pass
    def __getattr__(self, name): return lambda *a, **k: (torch.zeros(1), torch.zeros(1))
""",
    "a finaliser that never ends": """
import atexit, threading
atexit.register(lambda: [None for _ in iter(int, 1)])
threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
""",
}
