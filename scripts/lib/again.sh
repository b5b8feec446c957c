# Runs the tests, and those that failed once more, alone. Sourced by scripts/test.

# How many failures may be due to a busy machine; beyond that something is broken.
most_unsteady=5

# The names of the tests that failed, from what `cargo test` printed.
failed_tests() {
    sed -nE 's/^test ([^ ]+)( - should panic)? \.\.\. FAILED$/\1/p' "$1" | sort -u
}

# The kinds of targets that failed (`--lib`, `--test it`), from the list that ends cargo's output.
failed_targets() {
    sed -nE 's/^ +`-p [^ ]+ (--lib|--(test|bin) [^ `]+).*`$/\1/p' "$1" | sort -u
}

run_tests() {
    local log status=0
    log="$(mktemp)"
    cargo test --workspace --locked --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
    if [ "$status" -ne 0 ]; then
        run_again "$log" || { rm -f "$log"; return "$status"; }
    fi
    rm -f "$log"
}

run_again() {
    local log="$1" tests targets
    mapfile -t tests < <(failed_tests "$log")
    mapfile -t targets < <(failed_targets "$log")
    if [ "${#tests[@]}" -eq 0 ] || [ "${#targets[@]}" -eq 0 ]; then
        return 1
    fi
    if [ "${#tests[@]}" -gt "$most_unsteady" ]; then
        printf '\n%s tests failed: too many to blame on a busy machine.\n' "${#tests[@]}"
        printf '  %s\n' "${tests[@]}"
        return 1
    fi
    printf '\n== once more, alone: %s\n' "${tests[*]}"
    # Each target is two words or one; they are split here on purpose.
    # shellcheck disable=SC2068
    cargo test --workspace --locked --no-fail-fast ${targets[@]} -- --exact --test-threads=1 "${tests[@]}" || return 1
    printf '\nUnsteady: failed in the whole run, passed alone. Repair them:\n'
    printf '  %s\n' "${tests[@]}"
}
