#!/bin/sh
# Every line counts, also a last one without a trailing newline.
got=$(sh total.sh prices.txt)
if [ "$got" = 12 ]; then
    echo "ok: the total is $got"
else
    echo "FAIL: the total should be 12 and is $got"
    exit 1
fi
