"""Known mistakes of 02_lunar_lander, by piece."""

from grading.mistakes import lunar_advantages, lunar_loss

MISTAKES = lunar_advantages.MISTAKES | lunar_loss.MISTAKES
