"""Run the torture: `python -m benchmarks.torture`."""

from benchmarks.torture.run import main

if __name__ == "__main__":  # workers import this module, too
    main()
