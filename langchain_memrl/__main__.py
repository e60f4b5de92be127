"""`python -m langchain_memrl`: the same command as `memrl`."""

from langchain_memrl.cli import main

if __name__ == "__main__":
    main()
