"""The full way to run answers: a Jupyter kernel in the sandbox, over ipc, for cells that need everything that one has.

It runs inside (with grading/inside.py), where nothing can be trusted, and is only a relay: the judge sees the same
messages, in the same order, as from the fast way, and checks them in the same way.
"""

import contextlib
import os
import subprocess
import sys
import time

import wire

START_SECONDS = 50
# Before a line of the student's: what the fast way has imported as well, and nobody to answer input().
FIRST_CELL = """
import sys as _sys
_sys.path.insert(0, {helpers!r})
import inside as _inside
_inside.preload()
get_ipython().kernel.raw_input = lambda prompt="": ""
"""
QUESTIONS = "_inside.questions({fd}, {assignment!r}, get_ipython().user_ns)"


class Kernel:
    """A running kernel. The socket `fd` to the judge is handed on to it, for the questions."""

    def __init__(self, fd, helpers):
        from jupyter_client import BlockingKernelClient
        from jupyter_client.connect import write_connection_file
        file, _ = write_connection_file(os.path.abspath("kernel.json"), transport="ipc", ip=os.path.abspath("kernel"))
        self._fd = fd
        with open("kernel.log", "wb") as log:
            self._process = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", file], pass_fds=[fd],
                                             stderr=log)
        self._client = BlockingKernelClient(connection_file=file)
        self._client.load_connection_file()
        self._client.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=False)
        status, error = self.run(FIRST_CELL.format(helpers=helpers), START_SECONDS)
        if status != "ok":
            raise RuntimeError(f"the kernel did not start: {error}")

    def run(self, source, seconds=None):
        """(status, error as "Name: text") of a cell."""
        sent = self._client.execute(source, silent=False, store_history=False, allow_stdin=False, stop_on_error=False)
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            with contextlib.suppress(Exception):  # nothing came within the second: queue.Empty, or what zmq makes of it
                reply = self._client.get_shell_msg(timeout=1)
                if reply["parent_header"].get("msg_id") == sent:
                    content = reply["content"]
                    lines = str(content.get("evalue", "")).strip().splitlines()
                    return content["status"], f"{content.get('ename', '')}: {lines[0] if lines else ''}".rstrip(": ")
            if self._process.poll() is not None:
                if deadline:
                    with open("kernel.log", errors="replace") as log:
                        return "error", log.read()[-400:]
                os._exit(0)  # the kernel is gone, and so is this process: the judge sees that it ended
            if deadline and time.monotonic() > deadline:
                return "error", "it does not answer"

    def serve(self, assignment, cells, send):
        """Runs the cells, then hands the line to the judge over to the kernel, which answers the questions."""
        for cell_id, source in cells:
            send({"at": cell_id})
            status, error = self.run(source)
            send({"ran": cell_id, "status": status, "error": "" if status == "ok" else error[: wire.MAX_TEXT], "place": ""})
        self.run(QUESTIONS.format(fd=self._fd, assignment=assignment))
