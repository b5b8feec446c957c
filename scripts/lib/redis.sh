# A Redis server, from Debian. Sourced after needs.sh, whose `need_program` it uses.

# Tests start private instances of it themselves (own port, own directory, appendfsync always) and stop
# them by their pid; they find the program by the exported variable, and fail without it.
need_redis() {
    need_program redis-server redis-server
    need_program redis-cli redis-tools
    WINDLASS_TEST_REDIS="$(command -v redis-server)"
    export WINDLASS_TEST_REDIS
}
