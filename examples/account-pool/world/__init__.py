"""The world around the user's code: the site that judges, operators, programs with bugs.

The files beside this folder are the user's. None of them needs anything from here.
"""
