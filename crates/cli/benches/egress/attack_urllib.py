"""Opens each URL of a NUL-separated list with urllib: through the proxy of the environment, then without a proxy."""

import sys
import urllib.request

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for url in open(sys.argv[1], "rb").read().decode().split("\0"):
    for opener in (urllib.request.build_opener(), direct):
        try:
            opener.open(url, timeout=2).read(1)
        except Exception as error:  # a hostile URL may cause any error in the parser
            print(f"{url!r}: {error}", file=sys.stderr)
