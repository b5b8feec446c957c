# A real MCP server, from npm. Sourced after needs.sh, whose cache and `need_program` it uses.

# The reference file system server; its tests find it by the exported variable.
need_mcp() {
    local package='@modelcontextprotocol/server-filesystem@2026.8.31'
    local home="$needs_cache/mcp-filesystem"
    if [ "$(cat "$home/installed" 2>/dev/null)" != "$package" ]; then
        need_program node nodejs
        need_program npm npm
        echo "installing $package"
        rm -rf "$home"
        mkdir -p "$home"
        npm install --silent --no-audit --no-fund --prefix "$home" "$package"
        printf '%s' "$package" >"$home/installed"
    fi
    export WINDLASS_TEST_MCP_FILESYSTEM="$home/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
}
