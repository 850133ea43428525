"""Build the files of a release, check them, and install them: see ``ortscan/docs/maintainers/releasing.md``."""
