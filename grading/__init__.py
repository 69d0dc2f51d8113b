"""The instructor's side: builds the student version, grades submissions. Never ships to students.

    python -m grading build | grade | demo | doctor
"""
