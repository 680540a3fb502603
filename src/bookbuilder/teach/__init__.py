"""Prepares a course. In: chapters, exercises and lectures. Out: slides, homework, tutors' sheets and a syllabus."""
