"""The command line of the instructor's side: python -m grading build | grade | report | export | doctor | demo."""

import argparse
import os
import sys

# Before anything imports torch: one thread a process, the parallel work is done by processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")


UNSAFE = """\
**********************************************************************************
*  NO SANDBOX: student code runs as you, under process limits only. It can read  *
*  your files and use your network. The scores hold for people whom you trust.   *
**********************************************************************************"""


def main(argv=None):
    """Runs a command; returns the exit status: 0 done, 1 not everything could be done, 2 wrong input."""
    parser = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="make reference.json, notebooks/ and the student bundles from solutions/")
    build.add_argument("--hints", choices=("nudge", "pointer", "answer"), default="pointer",
                       help="the strongest hint that students see (default: %(default)s)")
    build.add_argument("--check", action="store_true", help="change nothing; exit 1 if something is out of date")
    grade = commands.add_parser("grade", help="grade FOLDER/STUDENT/ASSIGNMENT.ipynb of a class")
    grade.add_argument("folder", help="the folder that holds a folder for each student")
    grade.add_argument("--assignment", required=True, help="as in 02_lunar_lander")
    grade.add_argument("--out", required=True, help="grades.csv, gradebook.db and feedback/ go here")
    grade.add_argument("--workers", type=int, help="processes (default: one per core)")
    grade.add_argument("--cluster", metavar="ADDRESS", help="tcp://HOST:PORT of a Dask scheduler whose workers judge")
    grade.add_argument("--full", action="store_true", help="run answers in a Jupyter kernel in the sandbox (slower)")
    grade.add_argument("--unsafe-no-sandbox", action="store_true",
                       help="run student code under process limits only; grades.csv will say so")
    for name, text in (("report", "tell what a graded class got"),
                       ("export", "write a graded class for Canvas, Moodle or Gradescope")):
        command = commands.add_parser(name, help=text)
        command.add_argument("out", help="the folder that `grade` wrote to")
        if name == "export":
            command.add_argument("--to", required=True, choices=("canvas", "moodle", "gradescope"), help="which system")
            command.add_argument("--roster", help="canvas: the gradebook CSV exported from there, to match its students")
    commands.add_parser("doctor", help="try whether the sandbox holds on this machine, and say how to mend it")
    demo = commands.add_parser("demo", help="grade a class of made-up submissions and check what comes out")
    demo.add_argument("--out", default="build/demo", help="where to (default: %(default)s)")
    demo.add_argument("--workers", type=int, help="processes (default: one per core)")
    arguments = parser.parse_args(argv)
    try:
        return globals()[f"_{arguments.command}"](arguments)
    except ValueError as error:  # BadInput and an unknown assignment: said in one line
        print(f"error: {error}", file=sys.stderr)
        return 2


def _build(arguments):
    from grading import build, notebooks
    if arguments.check:
        stale = build.stale(arguments.hints)
        for path in stale:
            print(f"out of date: {path.relative_to(notebooks.ROOT)}; run `python -m grading build`")
        return 1 if stale else 0
    for path in build.build(arguments.hints):
        print(f"wrote {path.relative_to(notebooks.ROOT)}")
    return 0


def _grade(arguments):
    from grading import batch
    if arguments.workers is not None and arguments.workers < 1:
        raise ValueError(f"--workers {arguments.workers}: at least 1")
    if arguments.unsafe_no_sandbox:
        print(UNSAFE, file=sys.stderr)
    verdicts = batch.grade(arguments.folder, arguments.assignment, arguments.out, arguments.workers, batch.Progress(),
                           arguments.unsafe_no_sandbox, arguments.full, arguments.cluster)
    for verdict in verdicts:
        if verdict.status != "ok":
            print(f"{verdict.student}: {verdict.status}: {'; '.join(verdict.notes) or 'see the feedback'}")
    print(f"{len(verdicts)} submissions: {arguments.out}/grades.csv, gradebook.db, feedback/, class.html")
    if arguments.unsafe_no_sandbox:
        print(UNSAFE, file=sys.stderr)
    return 1 if any(verdict.status == "infrastructure" for verdict in verdicts) else 0


def _report(arguments):
    from grading import results
    print(results.summary(results.read(arguments.out)))
    return 0


def _export(arguments):
    from grading import results
    for path in results.export(arguments.out, arguments.to, arguments.roster):
        print(f"wrote {path}")
    return 0


def _doctor(arguments):
    from grading import doctor
    return doctor.run()


def _demo(arguments):
    from grading import bubblewrap, demo
    why = bubblewrap.missing()
    if why:
        print(UNSAFE, file=sys.stderr)
        print(f"That is enough for this made-up class. For a real one: {why}", file=sys.stderr)
    return demo.run(arguments.out, arguments.workers, unsafe=bool(why))


if __name__ == "__main__":
    sys.exit(main())
