"""Known mistakes of 04_continuous_control: RunningNorm."""

import torch

from grading.mistakes import Book

MISTAKES = Book()
mistake = MISTAKES.add


class Norm:
    """A right RunningNorm; every mistake below replaces one method."""

    dimension = 0
    correction = 0
    dtype = torch.float64

    def __init__(self, shape, clip=10.0):
        self.clip, self.frozen, self.count = clip, False, 0
        self.mean, self.var = torch.zeros(shape, dtype=self.dtype), torch.ones(shape, dtype=self.dtype)

    def moments(self, batch):
        return len(batch), batch.mean(0), batch.var(0, correction=self.correction)

    def update(self, batch):
        if not self.frozen:
            self.merge(*self.moments(batch.to(self.dtype)))

    def merge(self, count, mean, var):
        total, apart = self.count + count, mean - self.mean
        self.var = (self.count * self.var + count * var + self.between(apart, count, total)) / total
        self.mean = self.mean + apart * count / total
        self.count = total

    def between(self, apart, count, total):
        return apart.square() * self.count * count / total

    def scaled(self, x):
        return (x - self.mean) / (self.var + 1e-8).sqrt()

    def __call__(self, x):
        return self.scaled(x).clamp(-self.clip, self.clip).float()


@mistake("RunningNorm",
         nudge="Two groups that do not vary at all, around different means: do they vary together?",
         pointer="The variance lacks the term for the distance between the old mean and the batch's mean.",
         answer="Add (batch mean - old mean)^2 * n * m / (n + m) before dividing by n + m.")
class distance_of_the_means_forgotten(Norm):
    def between(self, apart, count, total):
        return 0.0


@mistake("RunningNorm",
         nudge="In which order do the mean and the variance change?",
         pointer="The variance is computed with the new mean; it needs the old one.",
         answer="Compute the distance of the means first, and assign self.mean after self.var.")
class mean_updated_first(Norm):
    def merge(self, count, mean, var):
        total = self.count + count
        self.mean = self.mean + (mean - self.mean) * count / total
        self.var = (self.count * self.var + count * var + (mean - self.mean).square() * self.count * count / total) / total
        self.count = total


@mistake("RunningNorm",
         nudge="How much does a batch of 2 weigh beside one of 200?",
         pointer="Old and new are averaged with equal weights; they count by their number of rows.",
         answer="Move the mean by (batch mean - old mean) * m / (n + m).")
class equal_weights(Norm):
    def merge(self, count, mean, var):
        share = 0.5 if self.count else 1.0
        between = (mean - self.mean).square() * share * (1 - share)
        self.var = (1 - share) * self.var + share * var + between
        self.mean = self.mean + share * (mean - self.mean)
        self.count += count


@mistake("RunningNorm",
         nudge="What do the statistics remember of the first batch after the third?",
         pointer="Only the last batch counts: everything before it is forgotten.",
         answer="Merge the batch into self.mean and self.var, weighted by the counts.")
class only_the_last_batch(Norm):
    def merge(self, count, mean, var):
        self.mean, self.var = mean, var


@mistake("RunningNorm",
         nudge="What do you add to the count for a batch of 64 rows?",
         pointer="The count grows by 1 for each batch; it must grow by the number of rows.",
         answer="total = self.count + len(batch).")
class batches_counted(Norm):
    def moments(self, batch):
        return 1, batch.mean(0), batch.var(0, correction=0)


@mistake("RunningNorm",
         nudge="Divide by the count, or by the count minus one? And what is the variance of a single row?",
         pointer="The batch's variance divides by m - 1; here variances divide by m.",
         answer="batch.var(0, correction=0).")
class sample_variance(Norm):
    correction = 1


@mistake("RunningNorm",
         nudge="How many means does an observation of 105 numbers have?",
         pointer="One mean and one variance serve all entries; every entry has its own.",
         answer="Reduce over dimension 0 only: batch.mean(0), batch.var(0, correction=0).")
class one_mean_for_all_entries(Norm):
    def moments(self, batch):
        ones = torch.ones_like(self.mean)
        return len(batch), batch.mean() * ones, batch.var(correction=0) * ones


@mistake("RunningNorm",
         nudge="What happens to the first batch?",
         pointer="The start (mean 0, variance 1) is counted as if it had been seen.",
         answer="The count starts at 0: the first batch replaces the start.")
class start_counts_as_a_row(Norm):
    def __init__(self, shape, clip=10.0):
        super().__init__(shape, clip)
        self.count = 1


@mistake("RunningNorm",
         nudge="Variance or standard deviation: which one makes the spread 1?",
         pointer="You divide by the variance, not by its root.",
         answer="(x - mean) / (var + 1e-8).sqrt().")
class divided_by_the_variance(Norm):
    def scaled(self, x):
        return (x - self.mean) / (self.var + 1e-8)


@mistake("RunningNorm",
         nudge="Around which number do normalised values lie?",
         pointer="The mean is not subtracted.",
         answer="(x - self.mean) / ...")
class mean_not_subtracted(Norm):
    def scaled(self, x):
        return x / (self.var + 1e-8).sqrt()


@mistake("RunningNorm",
         nudge="What does the network see when a joint does something it has never done?",
         pointer="The normalised values are not clipped.",
         answer="clamp(-self.clip, self.clip).")
class not_clipped(Norm):
    def __call__(self, x):
        return self.scaled(x).float()


@mistake("RunningNorm",
         nudge="Is the bound the same for everyone who asks for another clip?",
         pointer="The bounds are fixed at 10, whatever the argument clip says.",
         answer="clamp(-self.clip, self.clip).")
class clip_fixed_at_10(Norm):
    def __call__(self, x):
        return self.scaled(x).clamp(-10, 10).float()


@mistake("RunningNorm",
         nudge="What is clipped: the raw observation, or the normalised one?",
         pointer="You clip before you scale.",
         answer="First (x - mean) / std, then clamp.")
class clipped_before_scaling(Norm):
    def __call__(self, x):
        return self.scaled(x.clamp(-self.clip, self.clip)).float()


@mistake("RunningNorm",
         nudge="What does frozen promise?",
         pointer="update() changes the statistics even while frozen is True.",
         answer="Return at once from update() if self.frozen.")
class frozen_ignored(Norm):
    def update(self, batch):
        self.merge(*self.moments(batch.double()))


@mistake("RunningNorm",
         nudge="Normalise the same x twice. Should the second answer differ?",
         pointer="Normalising also updates the statistics.",
         answer="__call__ only reads; update() learns.")
class normalising_learns(Norm):
    def __call__(self, x):
        self.update(x)
        return super().__call__(x)


@mistake("RunningNorm",
         nudge="Which dtype do the networks eat?",
         pointer="The normalised values are float64; the networks are float32.",
         answer="End with .float().")
class stays_float64(Norm):
    def __call__(self, x):
        return self.scaled(x).clamp(-self.clip, self.clip).double()
