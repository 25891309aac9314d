"""Measure the readers: cold and warm, full table and one match, through the slow link.

    python run.py --config bench.json --out results.jsonl [--only ENGINE ...] [--repeat N]

For one engine and case, three states, each in a new process:
  cold    cache directory emptied; the second scan in that process is "again"
  warm    a new process over the cache directory that "cold" left
  local   the same table on local disk, no S3 (what the engine itself costs)
The page cache is left as it is: data on local disk is as good as in memory.
`report.py` turns the lines into a table.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DISK_CACHE = {"pyiceberg-simplecache", "floe"}
NO_LOCAL = {"pyiceberg-simplecache"}


def command(engine, case, config, scans):
    if engine == "limits":
        return [os.environ["YARDSTICK_LIMITS"], config["catalog"].removesuffix(".db"), str(scans)]
    if engine == "floe":
        return [os.environ["YARDSTICK_READER"], case, str(scans), json.dumps(config)]
    return [sys.executable, os.path.join(HERE, "peers.py"), "--engine", engine,
            "--case", case, "--config", json.dumps(config), "--scans", str(scans)]


def one(engine, case, config, scans, timeout):
    began = time.monotonic()
    done = subprocess.run(command(engine, case, config, scans),
                          capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        return {"engine": engine, "case": case, "error": done.stderr.strip().splitlines()[-1:]}
    result = json.loads(done.stdout.strip().splitlines()[-1])
    # The whole life of the process, less its further scans.
    result["process_s"] = round(time.monotonic() - began - sum(s["s"] for s in result["scans"][1:]), 4)
    return result


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--cases", nargs="*", default=["full", "match"])
    ap.add_argument("--states", nargs="*", default=["cold", "warm", "local"])
    ap.add_argument("--repeat", type=int, default=1, help="repeats of cold")
    ap.add_argument("--repeat-fast", type=int, default=5, help="repeats of warm and local")
    ap.add_argument("--timeout", type=int, default=900)
    args = ap.parse_args()
    with open(args.config) as f:
        config = json.load(f)
    slow = {k: v for k, v in config.items() if k != "local_catalog"}
    local = {"catalog": config["local_catalog"]}
    sys.path.insert(0, HERE)
    import peers

    with open(args.out, "a") as out:
        def note(state, result):
            result["state"] = state
            out.write(json.dumps(result) + "\n")
            out.flush()
            if "error" in result:
                print(state, result["engine"], result["case"], result["error"], flush=True)
                return
            print(state, result["engine"], result["case"], [x["s"] for x in result["scans"]],
                  result["scans"][0]["link"].get("kinds"), result["scans"][0]["link"].get("down"), flush=True)

        if "local" in args.states:
            for _ in range(args.repeat_fast):
                note("local", one("floe", "stream", local, 2, args.timeout))
                note("local", one("floe", "kept", local, 1, args.timeout))
                note("local", one("limits", "stream", local, 2, args.timeout))
        for engine in args.only or ["floe", *peers.ENGINES]:
            for case in args.cases:
                for _ in range(args.repeat if "cold" in args.states else 0):
                    shutil.rmtree(slow["cache_dir"], ignore_errors=True)
                    os.makedirs(slow["cache_dir"])
                    note("cold", one(engine, case, slow, 2, args.timeout))
                if "warm" in args.states and engine in DISK_CACHE:
                    for _ in range(args.repeat_fast):
                        note("warm", one(engine, case, slow, 2, args.timeout))
                if "local" in args.states and engine not in NO_LOCAL:
                    for _ in range(args.repeat_fast):
                        note("local", one(engine, case, local, 2, args.timeout))


if __name__ == "__main__":
    main()
