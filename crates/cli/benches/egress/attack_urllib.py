"""Opens each URL of a list, separated by NUL, with urllib: through the proxy of the environment, then without one."""

import sys
import urllib.request

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for url in open(sys.argv[1], "rb").read().decode().split("\0"):
    for opener in (urllib.request.build_opener(), direct):
        try:
            opener.open(url, timeout=2).read(1)
        except Exception as error:  # whatever a hostile URL does to the parser
            print(f"{url!r}: {error}", file=sys.stderr)
