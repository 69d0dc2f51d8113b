"""Known mistakes of 04_continuous_control: RewardScaler."""

import torch

from grading.mistakes import Book
from grading.mistakes.robot_norm import Norm

MISTAKES = Book()
mistake = MISTAKES.add


class Scaler:
    """A right RewardScaler; every mistake below replaces one method."""

    def __init__(self, num_envs, gamma, clip=10.0):
        self.gamma, self.clip = gamma, clip
        self.running, self.returns = torch.zeros(num_envs, dtype=torch.float64), Norm(())

    def add(self, rewards):
        self.running = self.gamma * self.running + rewards

    def learn(self, rewards):
        self.returns.update(self.running)

    def restart(self, ended):
        self.running = self.running * ~ended

    def scaled(self, rewards):
        return rewards / (self.returns.var + 1e-8).sqrt()

    def __call__(self, rewards, ended):
        self.add(rewards)
        self.learn(rewards)
        self.restart(ended)
        return self.scaled(rewards).clamp(-self.clip, self.clip).float()


@mistake("RewardScaler",
         nudge="An ant earns 1 for being alive. What does it earn after your scaling?",
         pointer="You subtract the mean: that changes which behaviour pays. Rewards are only divided.",
         answer="rewards / sqrt(variance + 1e-8).")
class mean_subtracted(Scaler):
    def scaled(self, rewards):
        return (rewards - self.returns.mean) / (self.returns.var + 1e-8).sqrt()


@mistake("RewardScaler",
         nudge="Whose size must the critic cope with: rewards or returns?",
         pointer="You divide by the standard deviation of the rewards; it must be that of the running discounted return.",
         answer="Keep R = gamma * R + r for each robot, and the variance of R.")
class std_of_the_rewards(Scaler):
    def learn(self, rewards):
        self.returns.update(rewards)


@mistake("RewardScaler",
         nudge="What remains of an episode's return when the next one begins?",
         pointer="The running return goes on across the end of an episode.",
         answer="After an ending step: running = running * ~ended.")
class running_return_not_restarted(Scaler):
    def restart(self, ended):
        pass


@mistake("RewardScaler",
         nudge="Does the last reward of an episode belong to its return?",
         pointer="The running return is set to 0 before the statistics have seen the ending step.",
         answer="Add, learn, and only then set to 0 where ended.")
class restarted_before_learning(Scaler):
    def __call__(self, rewards, ended):
        self.add(rewards)
        self.restart(ended)
        self.learn(rewards)
        return self.scaled(rewards).clamp(-self.clip, self.clip).float()


@mistake("RewardScaler",
         nudge="How much is yesterday's reward worth in your running return?",
         pointer="The running return is not discounted.",
         answer="running = gamma * running + rewards.")
class running_return_not_discounted(Scaler):
    def add(self, rewards):
        self.running = self.running + rewards


@mistake("RewardScaler",
         nudge="What is discounted: the past or the present?",
         pointer="The discount is applied to the new reward too.",
         answer="running = gamma * running + rewards: the bracket closes before rewards.")
class new_reward_discounted(Scaler):
    def add(self, rewards):
        self.running = self.gamma * (self.running + rewards)


@mistake("RewardScaler",
         nudge="Variance or standard deviation: which one has the unit of a reward?",
         pointer="You divide by the variance, not by its root.",
         answer="rewards / (variance + 1e-8).sqrt().")
class rewards_divided_by_the_variance(Scaler):
    def scaled(self, rewards):
        return rewards / (self.returns.var + 1e-8)


@mistake("RewardScaler",
         nudge="In which order: learn, then divide; or divide, then learn?",
         pointer="The rewards are divided by the statistics from before this step.",
         answer="Update the statistics first, then divide.")
class divided_before_learning(Scaler):
    def __call__(self, rewards, ended):
        scaled = self.scaled(rewards).clamp(-self.clip, self.clip).float()
        super().__call__(rewards, ended)
        return scaled


@mistake("RewardScaler",
         nudge="How large may one scaled reward become?",
         pointer="The scaled rewards are not clipped.",
         answer="clamp(-self.clip, self.clip).")
class rewards_not_clipped(Scaler):
    def __call__(self, rewards, ended):
        clip, self.clip = self.clip, float("inf")
        try:
            return super().__call__(rewards, ended)
        finally:
            self.clip = clip


@mistake("RewardScaler",
         nudge="How many variances are there: one, or one for each robot?",
         pointer="Every robot has a variance of its own; all share one.",
         answer="The running returns [N] are one batch of N single numbers: RunningNorm(()).")
class one_variance_for_each_robot(Scaler):
    def __init__(self, num_envs, gamma, clip=10.0):
        super().__init__(num_envs, gamma, clip)
        self.returns = Norm((num_envs,))

    def learn(self, rewards):
        self.returns.update(self.running[None])


@mistake("RewardScaler",
         nudge="What do you return: this step's reward, or the return so far?",
         pointer="You scale the running return; only the reward of this step is to be returned.",
         answer="rewards / std, not running / std.")
class running_return_returned(Scaler):
    def __call__(self, rewards, ended):
        self.add(rewards)
        self.learn(rewards)
        scaled = self.scaled(self.running)
        self.restart(ended)
        return scaled.clamp(-self.clip, self.clip).float()


@mistake("RewardScaler",
         nudge="Where is the running return set to 0: where an episode ended, or where it goes on?",
         pointer="The flag is inverted: the running return is kept only where an episode ended.",
         answer="running * ~ended.")
class restarted_where_it_goes_on(Scaler):
    def restart(self, ended):
        self.running = self.running * ended
