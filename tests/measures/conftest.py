"""Generated cases take what time they take: the first of them compiles kernels, and machines are shared."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
