"""Known mistakes of 03_ppo_details in rollout_phase. T steps, N envs."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch.distributions import Categorical

from grading.mistakes import Book

MISTAKES = Book()


def policy(agent, obs):
    """The helper of the notebook, for actions that are counted."""
    return Categorical(logits=agent.actor(obs), validate_args=False)


def tensor(x):
    return torch.as_tensor(x, dtype=torch.float32)


# A right rollout_phase in parts, as methods to replace.

@dataclass
class Step:
    """What envs.step returned."""

    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: dict


class Collect:
    """A right rollout_phase in parts. T x N steps; x is what envs.step returned."""

    def __call__(self, agent, envs, next_obs, next_done, args):
        self.agent, self.envs, self.args = agent, envs, args
        steps = []
        next_obs, next_done = self.begin(next_obs, next_done)
        for t in range(args.num_steps):
            with torch.set_grad_enabled(self.keeps_graph):
                actions, logprobs = self.act(next_obs)
                values = self.values(next_obs)
            x = Step(*envs.step(actions.numpy()))
            rewards = self.rewards(x)
            obs, done = tensor(x.obs), self.done(x)
            steps.append(self.row(t, next_obs, obs, actions, logprobs, rewards, next_done, done, values))
            next_obs, next_done = self.carry(next_obs, obs, next_done, done)
        columns = [torch.stack(column) for column in zip(*steps)]
        names = ("obs", "actions", "logprobs", "rewards", "dones", "values")
        return SimpleNamespace(**dict(zip(names, columns)), **self.end(next_obs, next_done))

    keeps_graph = False

    def begin(self, next_obs, next_done):
        return next_obs, next_done

    def act(self, obs):
        probs = policy(self.agent, obs)
        actions = probs.sample()
        return actions, probs.log_prob(actions)

    def values(self, obs):
        return self.agent.critic(obs).squeeze(-1)

    def cut(self, x):
        return x.truncated & ~x.terminated

    def last_obs(self, x, cut):
        return np.stack(x.infos["final_obs"][cut])

    def bootstrap(self, values):
        return self.args.gamma * values

    def rewards(self, x):
        rewards, cut = tensor(x.rewards), self.cut(x)
        if cut.any():
            with torch.no_grad():
                values = self.agent.critic(tensor(self.last_obs(x, cut))).squeeze(-1)
            rewards[torch.as_tensor(cut)] += self.bootstrap(values)
        return rewards

    def done(self, x):
        return tensor(x.terminated | x.truncated)

    def row(self, t, obs, next_obs, actions, logprobs, rewards, done_before, done_after, values):
        return obs, actions, logprobs, rewards, done_before, values

    def carry(self, obs, new_obs, done, new_done):
        return new_obs, new_done

    def end(self, next_obs, next_done):
        return {"next_obs": next_obs, "next_done": next_done}


def rollout(name, nudge, pointer, answer, **parts):
    """Registers a rollout_phase with replaced parts."""
    version = type(name, (Collect,), parts)

    def wrong(*arguments):
        return version()(*arguments)
    wrong.__name__ = name
    MISTAKES.add("rollout_phase", nudge=nudge, pointer=pointer, answer=answer)(wrong)


FIRST = "Store next_obs and next_done BEFORE the step: obs[t], dones[t] = next_obs, next_done."
BOOTSTRAP = 'rewards[cut] += args.gamma * critic(infos["final_obs"][cut]), with cut = truncated & ~terminated.'

rollout("stores_the_next_observation", "In which observation was the action taken?",
        "obs[t] holds the observation AFTER the step: actions are paired with what they led to.", FIRST,
        row=lambda self, t, obs, next_obs, a, lp, r, before, after, v: (next_obs, a, lp, r, before, v))
rollout("stores_done_after_the_step", "dones[t] = 1: did step t end an episode, or begin one?",
        "dones[t] holds what step t returned; it should say whether step t is the FIRST of an episode.", FIRST,
        row=lambda self, t, obs, next_obs, a, lp, r, before, after, v: (obs, a, lp, r, after, v))
rollout("forgets_how_it_begins", "What did the step before this rollout say?",
        "next_done is not used: the first row of dones is always 0.", FIRST,
        begin=lambda self, obs, done: (obs, done * 0))
rollout("never_moves_on", "Which observation does the second step act on?",
        "next_obs is not replaced by the new observation: every step acts on the same one.",
        "next_obs = torch.as_tensor(obs, ...)",
        carry=lambda self, obs, new_obs, done, new_done: (obs, new_done))
rollout("done_never_moves_on", "Who tells the next step that an episode has ended?",
        "next_done is not replaced after a step.", "next_done = terminated | truncated, as float.",
        carry=lambda self, obs, new_obs, done, new_done: (new_obs, done))
rollout("truncation_is_no_end", "After a truncation, is the next row the same episode?",
        "dones does not mark truncations: the environment was reset there too.", "terminated | truncated",
        done=lambda self, x: tensor(x.terminated))
rollout("termination_is_no_end", "After a termination, is the next row the same episode?",
        "dones marks truncations only.",
        "terminated | truncated", done=lambda self, x: tensor(x.truncated))
rollout("no_bootstrap_at_a_truncation", "The clock rang. Was the state worth nothing?",
        "Truncation is treated as termination: gamma * V(last observation) is not added.", BOOTSTRAP,
        cut=lambda self, x: x.truncated & False)
rollout("bootstraps_every_end", "What is a state worth after which nothing comes?",
        "gamma * V(last observation) is added at terminations too.", BOOTSTRAP,
        cut=lambda self, x: x.truncated | x.terminated)
rollout("bootstraps_terminations_only", "Which of the two ends is the clock's?",
        "terminated and truncated are swapped: you bootstrap where the task ended, and not where the clock rang.",
        BOOTSTRAP,
        cut=lambda self, x: x.terminated & ~x.truncated)
rollout("bootstraps_where_both_are_set", "If a step is terminated AND truncated, does anything come after it?",
        "A step that is both terminated and truncated is bootstrapped; termination wins.", BOOTSTRAP,
        cut=lambda self, x: x.truncated)
rollout("bootstraps_from_the_reset", "In SAME_STEP mode, what is the observation that step() returns at an end?",
        "You bootstrap from the first observation of the NEXT episode; the last one is infos['final_obs'].", BOOTSTRAP,
        last_obs=lambda self, x, cut: x.obs[cut])
rollout("bootstrap_without_gamma", "How far in the future is V(last observation)?",
        "gamma is missing in the bootstrap.", BOOTSTRAP,
        bootstrap=lambda self, values: values)
rollout("bootstrap_replaces_the_reward", "Was the last reward not received?",
        "gamma * V(last observation) replaces the reward of that step instead of being added.", BOOTSTRAP,
        rewards=lambda self, x: torch.where(torch.as_tensor(self.cut(x)), Collect.rewards(self, x) - tensor(x.rewards),
                                            tensor(x.rewards)))
rollout("most_likely_action", "How would this policy ever find out that another action is better?",
        "The most likely action is taken; it should be drawn.", "actions = probs.sample()",
        act=lambda self, obs: (lambda probs: (probs.logits.argmax(-1),
        probs.logits.max(-1).values))(policy(self.agent, obs)))


def _two_samples(self, obs):
    probs = policy(self.agent, obs)
    return probs.sample(), probs.log_prob(probs.sample())


rollout("logprobs_of_another_sample", "Of which action is the log-probability that you store?",
        "The log-probability belongs to a second sample, not to the action that was taken.",
        "actions = probs.sample(), once; logprobs = probs.log_prob(actions).", act=_two_samples)
rollout("random_actions", "Who chooses the actions?", "The actions are random numbers; the policy is not asked.",
        "actions = probs.sample()",
        act=lambda self, obs: (lambda a: (a, policy(self.agent, obs).log_prob(a)))(
            torch.randint(3, (len(obs),))))


def _probabilities(self, obs):
    actions, logprobs = Collect.act(self, obs)
    return actions, logprobs.exp()


rollout("probabilities_stored", "Probability, or its logarithm?", "logprobs holds probabilities; logs are meant.",
        "probs.log_prob(actions)", act=_probabilities)


def _values_after(self, t, obs, next_obs, a, lp, r, before, after, v):
    with torch.no_grad():
        return obs, a, lp, r, before, self.agent.critic(next_obs).squeeze(-1)


rollout("values_of_the_next_observation", "Of which observation is values[t]?",
        "values[t] is V of the observation after the step.", "values = agent.critic(next_obs), before the step.",
        row=_values_after)
rollout("values_keep_a_dimension", "Which shape has critic(obs), and which has values[t]?",
        "values has shape [T, N, 1]; it is [T, N].", "agent.critic(next_obs).squeeze(-1)",
        values=lambda self, obs: self.agent.critic(obs))
rollout("keeps_the_graph", "Does collecting data need gradients?",
        "Log-probabilities and values carry gradients; they are constants for the losses.",
        "with torch.no_grad(): around acting.",
        keeps_graph=True)


def _resets(self, next_obs, next_done):
    obs, _ = self.envs.reset()
    return tensor(obs), torch.zeros_like(next_done)


rollout("resets_at_the_beginning", "What happens to the episodes that were running?",
        "The environments are reset at the start of every rollout: running episodes are thrown away.",
        "Go on from next_obs and next_done.", begin=_resets)
rollout("rewards_clipped", "Is a reward of 2 better than a reward of 1?", "The rewards are cut to [-1, 1].",
        "Store the rewards as they come.", rewards=lambda self, x: Collect.rewards(self, x).clamp(-1, 1))
rollout("rewards_one_step_off", "Which reward did step t bring?", "The rewards are stored one step late.",
        "rewards[t] is what envs.step returned at step t.", rewards=lambda self, x: self.__dict__.setdefault("kept",
        []).append(
            Collect.rewards(self, x)) or (self.kept[-2] if len(self.kept) > 1 else self.kept[-1] * 0))
rollout("ends_on_the_old_observation", "Where does the next rollout go on?",
        "next_obs is the last observation acted on, not the one after the last step.",
        "Rollout(..., next_obs, next_done)",
        carry=lambda self, obs, new_obs, done, new_done: (self.__dict__.update(old=obs), (new_obs, new_done))[1],
        end=lambda self, obs, done: {"next_obs": self.old, "next_done": done})
rollout("forgets_how_it_ends", "What does the step after this rollout need to know?", "next_done is always 0.",
        "Rollout(..., next_obs, next_done)", end=lambda self, obs, done: {"next_obs": obs, "next_done": done * 0})
