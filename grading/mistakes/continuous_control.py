"""Known mistakes of 04_continuous_control, in the order of the notebook."""

from grading.mistakes import (
    Book,
    robot_advantages,
    robot_collect,
    robot_norm,
    robot_policy,
    robot_scaler,
    robot_steps,  # noqa: F401 - adds to robot_update
    robot_update,
)

MISTAKES = Book()
for _room in (robot_policy, robot_norm, robot_scaler, robot_advantages, robot_update, robot_collect):
    MISTAKES.update(_room.MISTAKES)
