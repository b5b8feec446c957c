# Other people's agents, from npm: workflows run them. Sourced after needs.sh, whose cache and `need_program` it uses.

# Claude Code and codex, both pinned: their wire formats are part of what the tests check. They speak only to the
# scripted model server on loopback.
need_runners() {
    local claude='@anthropic-ai/claude-code@2.1.325' codex='@openai/codex@0.166.0'
    local home="$needs_cache/runners"
    if [ "$(cat "$home/installed" 2>/dev/null)" != "$claude $codex" ]; then
        need_program node nodejs
        need_program npm npm
        echo "installing $claude and $codex"
        rm -rf "$home"
        mkdir -p "$home"
        npm install --silent --no-audit --no-fund --prefix "$home" "$claude" "$codex"
        printf '%s' "$claude $codex" >"$home/installed"
    fi
    export WINDLASS_TEST_RUNNERS="$home/node_modules"
}
