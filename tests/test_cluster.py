"""The same class on a Dask cluster gives the same grades, and a worker that is killed loses nothing."""

import signal
import subprocess
import sys

import pytest
from classroom import ASSIGNMENT, FIRST, answers, confined, hand_in, notebook

from grading import batch

distributed = pytest.importorskip("distributed", reason="pip install -e '.[cluster]'")
pytestmark = [confined, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for i in range(4):
        hand_in(folder / "in", f"s{i}", notebook(**{FIRST: f"K = {i}\n" + answers()[FIRST]}))
    hand_in(folder / "in", "wrong", notebook(**{FIRST: "x = 1"}))
    hand_in(folder / "in", "broken", b"{")
    batch.grade(folder / "in", ASSIGNMENT, folder / "local", 1)
    return folder / "in", (folder / "local" / "grades.csv").read_bytes()


def test_a_local_cluster_of_two_workers_gives_the_same_grades(graded, tmp_path):
    folder, expected = graded
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        batch.grade(folder, ASSIGNMENT, tmp_path / "out", cluster=cluster.scheduler_address)
    assert (tmp_path / "out" / "grades.csv").read_bytes() == expected


def test_workers_started_by_hand_give_the_same_grades_also_when_one_is_killed(graded, tmp_path):
    folder, expected = graded
    with distributed.LocalCluster(0, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                   "--no-dashboard"]
        workers = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for _ in range(2)]
        try:
            with distributed.Client(address) as client:
                client.wait_for_workers(2, timeout=60)
            killed = []

            def kill_one(done, total, verdict):
                if not killed:
                    killed.append(workers[0].send_signal(signal.SIGKILL))
            batch.grade(folder, ASSIGNMENT, tmp_path / "out", cluster=address, progress=kill_one)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    assert killed and (tmp_path / "out" / "grades.csv").read_bytes() == expected
