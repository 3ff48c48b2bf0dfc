"""`python -m namoo`: print version, engines, devices, the folder of the cache, and settings."""

from namoo.api.environment import overview

if __name__ == "__main__":
    print(overview())
