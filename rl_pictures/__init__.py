"""The rooms behind rl_gui.py: where pictures can go, where they come from, how they are shown and kept."""
