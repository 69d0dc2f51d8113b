"""Observers of 03_ppo_details, in the order of the notebook."""

from rl_checks import ppo_agent, ppo_batch, ppo_loop, ppo_losses

_ALL = ppo_agent.PIECES | ppo_batch.PIECES | ppo_losses.PIECES | ppo_loop.PIECES | ppo_agent.BONUS | ppo_batch.BONUS

PIECES = {name: _ALL[name] for name in (
    "agent_init", "compute_advantages", "minibatch_indexes", "make_minibatches", "calc_policy_loss",
    "calc_value_function_loss", "calc_entropy_loss", "ppo_scheduler", "make_optimizer", "calc_old_approx_kl",
    "calc_approx_kl", "calc_clipfrac", "calc_explained_variance", "calc_entropy", "rollout_phase", "learning_phase",
    "continuous_agent_init", "compute_advantages_without_loop")}
