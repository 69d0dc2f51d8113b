"""For instructors who run nbgrader's own commands: grades by this course's judge instead of a kernel.

In your course's nbgrader_config.py:   load_subconfig("/path/to/grading/nbgrader_config.py")
Then `nbgrader autograde NAME` judges each submission in a sandbox, with fresh questions; everything else stays.
"""

from grading.gradebook import PREPROCESSORS

c = get_config()  # noqa: F821 - nbgrader defines it
c.Autograde.autograde_preprocessors = PREPROCESSORS
