"""Known mistakes of 04_continuous_control: collect."""

from types import SimpleNamespace

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


class Collect:
    """A right collect in parts; every mistake below replaces one of them."""

    def __call__(self, envs, policy, norm, scale, obs, num_steps):
        self.envs, self.norm, self.scale = envs, norm, scale
        self.low, self.high = (torch.from_numpy(x) for x in (envs.single_action_space.low, envs.single_action_space.high))
        N, (D,) = envs.num_envs, envs.single_observation_space.shape
        rows = {name: [] for name in ("obs", "actions", "rewards", "terminated", "truncated", "final_obs")}
        noted, obs = [], self.start(obs)
        for _ in range(num_steps):
            seen = self.see(obs)
            drawn = self.drawn(policy.sample(self.for_policy(seen, obs)))
            new_obs, rewards, terminated, truncated, infos = envs.step(self.for_robot(drawn).numpy())
            terminated, truncated, new_obs = (torch.from_numpy(x) for x in (terminated, truncated, new_obs))
            final_obs = torch.zeros(N, D)
            for n in truncated.nonzero().flatten().tolist():
                final_obs[n] = self.final(torch.from_numpy(infos["final_obs"][n]), new_obs[n], obs[n])
            ended = self.ended(terminated, truncated)
            step = dict(obs=self.kept_obs(seen, new_obs), actions=drawn, final_obs=final_obs,
                        rewards=self.scaled(torch.from_numpy(rewards), ended), **self.flags(terminated, truncated))
            for name, value in step.items():
                rows[name].append(value)
            noted += self.noted(infos, terminated, truncated, rewards)
            obs = self.carried(new_obs)
        stacked = {name: torch.stack(values) for name, values in rows.items()}
        return SimpleNamespace(**stacked, next_obs=self.last(obs), episode_returns=noted), obs

    def start(self, obs):
        return obs

    def see(self, obs):
        self.norm.update(obs)
        return self.norm(obs)

    def for_policy(self, seen, obs):
        return seen

    def drawn(self, actions):
        return actions

    def for_robot(self, actions):
        return torch.maximum(torch.minimum(actions, self.high), self.low)

    def final(self, true, reset, before):
        return self.norm(true)

    def ended(self, terminated, truncated):
        return terminated | truncated

    def scaled(self, rewards, ended):
        return self.scale(rewards, ended)

    def kept_obs(self, seen, new_obs):
        return seen

    def flags(self, terminated, truncated):
        return {"terminated": terminated, "truncated": truncated}

    def noted(self, infos, terminated, truncated, rewards):
        return infos["episode"]["r"][infos["_episode"]].tolist() if "episode" in infos else []

    def carried(self, new_obs):
        return new_obs

    def last(self, obs):
        return self.norm(obs)


def wrong(**hints):
    """Decorator over a subclass of Collect: registers a function that makes a fresh one for every call."""
    def register(cls):
        def collect(envs, policy, norm, scale, obs, num_steps):
            return cls()(envs, policy, norm, scale, obs, num_steps)
        collect.__name__ = cls.__name__
        mistake("collect", **hints)(collect)
        return cls
    return register


@wrong(nudge="Whose density does the update ask for: that of the drawn action, or of the clipped one?",
       pointer="The clipped action is stored; its log-probability is that of an action nobody drew.",
       answer="Store the action as drawn; clip only what goes to envs.step.")
class clipped_action_stored(Collect):
    def drawn(self, actions):
        return self.for_robot(actions)


@wrong(nudge="What are the bounds of the robot's motors?",
       pointer="The robot gets actions outside of its bounds.",
       answer="actions.numpy().clip(low, high), with the bounds of envs.single_action_space.")
class action_not_clipped(Collect):
    def for_robot(self, actions):
        return actions


@wrong(nudge="Are the bounds of every robot -1 and 1?",
       pointer="The actions are clipped to [-1, 1], not to the bounds of envs.single_action_space.",
       answer="low, high = envs.single_action_space.low, envs.single_action_space.high.")
class bounds_fixed_at_1(Collect):
    def for_robot(self, actions):
        return actions.clamp(-1, 1)


@wrong(nudge="What do the statistics know after a thousand steps?",
       pointer="norm.update is never called: the statistics stay as they were.",
       answer="norm.update(obs) at each step, before norm(obs).")
class statistics_never_updated(Collect):
    def see(self, obs):
        return self.norm(obs)


@wrong(nudge="In which order: learn, then normalise?",
       pointer="The observation is normalised before the statistics have learned it.",
       answer="norm.update(obs) first, then norm(obs).")
class normalised_before_learned(Collect):
    def see(self, obs):
        seen = self.norm(obs)
        self.norm.update(obs)
        return seen


@wrong(nudge="Which observations does the policy know how to read?",
       pointer="The policy acts on raw observations; it learns from normalised ones.",
       answer="policy.sample(norm(obs)).")
class policy_sees_raw_observations(Collect):
    def for_policy(self, seen, obs):
        return obs.float()


@wrong(nudge="What is rollout.obs made of?",
       pointer="The raw observations are stored, not the normalised ones.",
       answer="rollout.obs[t] = norm(obs).")
class raw_observations_stored(Collect):
    def see(self, obs):
        self.norm.update(obs)
        self.kept = obs.float()
        return self.norm(obs)

    def kept_obs(self, seen, new_obs):
        return self.kept


@wrong(nudge="Which observation led to the action of row t?",
       pointer="rollout.obs[t] is the observation after the action, not the one before it.",
       answer="Store the observation before you call envs.step.")
class observation_after_the_action(Collect):
    def kept_obs(self, seen, new_obs):
        return self.norm(new_obs)


@wrong(nudge="After a cut, whose observation is in the array that step returns?",
       pointer="final_obs holds the first observation of the next episode, not the true last one.",
       answer='infos["final_obs"][n] where truncated.')
class reset_observation_kept(Collect):
    def final(self, true, reset, before):
        return self.norm(reset)


@wrong(nudge="Where did the last action lead?",
       pointer="final_obs holds the observation before the last action, not the one after it.",
       answer='infos["final_obs"][n] where truncated.')
class observation_before_the_cut(Collect):
    def final(self, true, reset, before):
        return self.norm(before)


@wrong(nudge="Which observations can the critic read?",
       pointer="The true last observations are not normalised.",
       answer='norm(torch.from_numpy(infos["final_obs"][n])).')
class final_observation_raw(Collect):
    def final(self, true, reset, before):
        return true.float()


@wrong(nudge="Who leads to V after the last row?",
       pointer="next_obs is not normalised.",
       answer="next_obs = norm(obs).")
class next_observation_raw(Collect):
    def last(self, obs):
        return obs.float()


@wrong(nudge="What does the critic learn from: raw or scaled rewards?",
       pointer="The rewards are stored as they came, without scale.",
       answer="rollout.rewards[t] = scale(rewards, ended).")
class raw_rewards_stored(Collect):
    def scaled(self, rewards, ended):
        self.scale(rewards, ended)
        return rewards.float()


@wrong(nudge="Which of the two kinds of end makes scale start anew?",
       pointer="scale is told of terminations only; a truncated episode has ended too.",
       answer="ended = terminated | truncated.")
class scale_not_told_of_truncations(Collect):
    def ended(self, terminated, truncated):
        return terminated


@wrong(nudge="Terminated and truncated: who uses which later?",
       pointer="rollout.terminated is set where an episode was cut, too: the bootstrap is lost.",
       answer="Keep the two flags apart.")
class done_for_terminated(Collect):
    def flags(self, terminated, truncated):
        return {"terminated": terminated | truncated, "truncated": truncated}


@wrong(nudge="In which order does envs.step return its flags?",
       pointer="terminated and truncated are swapped in the rollout.",
       answer="obs, rewards, terminated, truncated, infos = envs.step(...).")
class flags_swapped(Collect):
    def flags(self, terminated, truncated):
        return {"terminated": truncated, "truncated": terminated}


@wrong(nudge="How long can an episode be if every rollout begins with a reset?",
       pointer="The environments are reset at the start of the rollout; they go on where they were.",
       answer="Begin with the obs that you are given.")
class reset_at_the_start(Collect):
    def start(self, obs):
        return torch.from_numpy(self.envs.reset()[0])


@wrong(nudge="With which observation does the next call begin?",
       pointer="You return normalised observations; the next call would normalise them again.",
       answer="Return the raw obs of the last step.")
class normalised_observations_returned(Collect):
    def __call__(self, *arguments):
        rollout, _ = super().__call__(*arguments)
        return rollout, rollout.next_obs


@wrong(nudge="Which returns do people want to see: true or scaled ones? Of which episodes?",
       pointer="episode_returns holds entries of robots whose episode has not ended.",
       answer='infos["episode"]["r"][ended].')
class returns_of_all_robots(Collect):
    def noted(self, infos, terminated, truncated, rewards):
        return infos["episode"]["r"].tolist() if "episode" in infos else []


@wrong(nudge="What is the return of an episode: its last reward?",
       pointer="episode_returns holds the last reward of an episode, not the sum of all.",
       answer='infos["episode"]["r"][ended].')
class last_reward_noted(Collect):
    def noted(self, infos, terminated, truncated, rewards):
        return rewards[(terminated | truncated).numpy()].tolist()


@wrong(nudge="Which episodes are missing in your learning curve?",
       pointer="episode_returns leaves out the episodes that the clock has cut: the best ones.",
       answer='infos["episode"]["r"][terminated | truncated].')
class cut_episodes_not_noted(Collect):
    def noted(self, infos, terminated, truncated, rewards):
        return infos["episode"]["r"][terminated.numpy()].tolist() if "episode" in infos else []
