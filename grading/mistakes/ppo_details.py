"""Known mistakes of 03_ppo_details, in the order of the notebook."""

from grading.mistakes import (
    Book,
    ppo_advantages,
    ppo_agent,
    ppo_batch,
    ppo_learning,
    ppo_losses,
    ppo_metrics,
    ppo_optimizer,
    ppo_rollout,
)

MISTAKES = Book()
for _room in (ppo_agent, ppo_advantages, ppo_batch, ppo_losses, ppo_optimizer, ppo_metrics, ppo_rollout, ppo_learning):
    MISTAKES.update(_room.MISTAKES)
