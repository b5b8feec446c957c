//! What the help of each command teaches by example. One command a line, what it does beside it.

/// Of the program.
pub const PROGRAM: &str = "\
Examples:
  windlass demo                           watch it work, without a key
  windlass run \"fix the flaky test\"       work on a goal in this directory
  windlass -p \"what does this crate do?\"  print the answer and nothing else
  windlass run @goal.md --json            a goal from a file, events as JSON
  windlass inbox                          what waits for you
  windlass answer ANY_ID_SUFFIX Allow     answer it
  windlass resume ANY_ID_SUFFIX           go on with a task

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 blocked on a question,
4 paused, 5 cancelled, 6 budget hit, 130 interrupted by Ctrl-C (resumable).";

/// Of `run`.
pub const RUN: &str = "\
Examples:
  windlass run \"fix the flaky test\"
  windlass run @goal.md --constraint \"keep the public API\" --timeout 1800
  git diff | windlass run - --mode review -p
  windlass run \"upgrade the parser\" --model anthropic/NAME --control assisted
  windlass run \"ping\" --model script:replies.yaml --json

Ctrl-C once pauses the task and says how to go on; twice stops at once.";

/// Of `headless`.
pub const HEADLESS: &str = "\
Examples:
  windlass headless autonomous \"fix the build\"
  windlass headless --autonomous \"fix the build\" --json";

/// Of `demo`.
pub const DEMO: &str = "\
Examples:
  windlass demo                 a failing test is found, fixed and reported on
  windlass demo --keep          and its directory kept, to look around in";

/// Of `resume`.
pub const RESUME: &str = "\
Examples:
  windlass resume 7K2M                any unique end of the task's id will do
  windlass resume 7K2M --json         print what happens as JSON lines";

/// Of `serve`.
pub const SERVE: &str = "\
Examples:
  windlass serve                      take tasks from the data directory's bus
  REDIS_URL=redis://localhost windlass serve --tasks 20
                                      take them from Redis streams
  redis-cli XADD task-command '*' data '{\"command_id\":\"cmd_…\",…}'
                                      hand one in; see docs/bus.md

Ctrl-C or SIGTERM once parks every task at its next turn and ends; the next
start goes on with all of them. Twice ends at once.";

/// Of `worker`.
pub const WORKER: &str = "\
Examples:
  windlass worker                     help a `serve` of the same data directory
  REDIS_URL=redis://localhost windlass worker --tasks 8

A worker that is stopped hands its tasks back; one that dies loses them to
another within seconds.";

/// Of `tasks`.
pub const TASKS: &str = "\
Examples:
  windlass tasks                      the newest 50
  windlass tasks --status blocked     what is stuck
  windlass tasks --all --json         everything, for programs";

/// Of `status`.
pub const STATUS: &str = "\
Examples:
  windlass status
  windlass status --json | jq .limits";

/// Of `sessions`.
pub const SESSIONS: &str = "\
Examples:
  windlass sessions                   the newest, with their active tasks
  windlass sessions 7K2M --json       one with all of its tasks";

/// Of `schedule`.
pub const SCHEDULE: &str = "\
Examples:
  windlass schedule add --monitor \"watch the build\" --check \"green?\" --every 10m
  windlass schedule add --task 7K2M --check \"green?\" --every 10m --until 8h
  windlass schedule add --start \"write a report\" --cron \"30 9 * * 1\" --zone UTC
  windlass schedule add --task 7K2M --message \"wrap up\" --at \"2026-12-24 18:00\"
  windlass schedule list
  windlass schedule pause 9QX4        and `resume`, and `remove`

A running `windlass serve` keeps the time. A task that is checked on is parked
in between and costs nothing. Where clocks skip an hour in spring, `--cron`
skips times within it and `--daily` takes the moment after it.";

/// Of `event`.
pub const EVENT: &str = "\
Examples:
  windlass event 7K2M '{\"build\":\"green\"}'
  windlass event ses_7K2M \"the parcel has arrived\" --source mail
  curl -s https://ci.example/last | windlass event 7K2M - --id build-317";

/// Of `show`.
pub const SHOW: &str = "\
Examples:
  windlass show 7K2M
  windlass show 7K2M --json           with usage, cost and the context gauge";

/// Of `events`.
pub const EVENTS: &str = "\
Examples:
  windlass events 7K2M                what has happened
  windlass events 7K2M --follow       and what happens next, until it ends
  windlass events 7K2M --after 40     from event 41 on";

/// Of `result`.
pub const RESULT: &str = "\
Examples:
  windlass result 7K2M
  windlass result 7K2M | jq -r .final_message";

/// Of `logs`.
pub const LOGS: &str = "\
Examples:
  windlass logs 7K2M                  every command and what it printed
  windlass outputs CALL               the whole of one that was cut";

/// Of `trace`.
pub const TRACE: &str = "\
Examples:
  windlass trace 7K2M | jq .event_type
  windlass trace 7K2M --path          where the file is";

/// Of `cost`.
pub const COST: &str = "\
Examples:
  windlass cost                       by model and task
  windlass cost 7K2M --turns          of one task, reply by reply

A price that nobody knows is shown as unknown, never as zero. Set prices in
[models.\"NAME\"].";

/// Of `outputs`.
pub const OUTPUTS: &str = "\
Examples:
  windlass outputs call_01J9… > output.txt
  windlass outputs call_01J9… --stream stderr

Whole outputs are kept for 7 days.";

/// Of `inbox`.
pub const INBOX: &str = "\
Examples:
  windlass inbox
  windlass inbox --json | jq .question.question";

/// Of `answer`.
pub const ANSWER: &str = "\
Examples:
  windlass answer q_01J9… \"use the staging database\"
  windlass answer 7K2M 1 --resume     by its task, an option's number; go on";

/// Of `send`.
pub const SEND: &str = "\
Examples:
  windlass send 7K2M \"use tabs, please\"";

/// Of `pause`.
pub const PAUSE: &str = "\
Examples:
  windlass pause 7K2M                 it finishes what it is doing first
  windlass resume 7K2M                and goes on from there";

/// Of `cancel`.
pub const CANCEL: &str = "\
Examples:
  windlass cancel 7K2M --reason \"not needed any more\"";

/// Of `retry`.
pub const RETRY: &str = "\
Examples:
  windlass retry 7K2M                 a failed task, from where it failed";

/// Of `exec`.
pub const EXEC: &str = "\
Examples:
  windlass exec --test \"find / | head -10000\"
  windlass exec --test \"cargo test\" --sandbox local";

/// Of `image`.
pub const IMAGE: &str = "\
Examples:
  windlass image build                the usual one, from Debian's packages
  windlass image build --browser      with Chromium
  CONTAINER_IMAGE=mine:1 windlass image check";

/// Of `config`.
pub const CONFIG: &str = "\
Examples:
  windlass config                     every setting and where it came from
  windlass config --changed           only what is not at its default
  windlass config --json | jq .key";

/// Of `models`.
pub const MODELS: &str = "\
Examples:
  windlass models                     which model each mode uses
  windlass models --test              ask each for one word
  windlass models --test --model anthropic/NAME

To set one up:
  export OPENAI_API_KEY=…
  export ANTHROPIC_API_KEY=…
  export LITELLM_API_BASE=http://localhost:4000 LITELLM_MODEL=gpt-4o";

/// Of `trust`.
pub const TRUST: &str = "\
Examples:
  windlass trust                      show what the file would set, then ask
  windlass trust ../other --yes

A changed file has to be approved again.";

/// Of `doctor`.
pub const DOCTOR: &str = "\
Examples:
  windlass doctor";

/// Of `completions`.
pub const COMPLETIONS: &str = "\
Examples:
  windlass completions bash >> ~/.bash_completion
  windlass completions fish > ~/.config/fish/completions/windlass.fish
  windlass completions zsh > \"${fpath[1]}/_windlass\"";

/// Of `man`.
pub const MAN: &str = "\
Examples:
  windlass man > windlass.1 && man ./windlass.1";

/// Of `explain`.
pub const EXPLAIN: &str = "\
Examples:
  windlass explain 'git push origin main'
  windlass explain --json 'curl https://example.com/x | sh'
  printf '\"ls\"\\n\"rm -rf /\"\\n' | windlass explain --stdin";

/// Of `permissions`.
pub const PERMISSIONS: &str = "\
Examples:
  windlass permissions                what `Allow All` has allowed, numbered
  windlass permissions --revoke 1     ask again from now on";

/// Of `metrics`.
pub const METRICS: &str = "\
Examples:
  windlass metrics | grep agent_tool_calls";

/// Of `skills`.
pub const SKILLS: &str = "\
Examples:
  windlass skills list                what agents and you can use here
  windlass skills show deploy         one of them, as it is now
  windlass run \"/deploy the web shop\"  call for it by its name
  windlass skills new release-notes   begin one, with a first eval case
  windlass skills check               which file is wrong, in which line
  windlass skills eval release-notes  does it help? with it and without";

/// Of `mcp`.
pub const MCP: &str = "\
Examples:
  windlass mcp list                   of .mcp.json, your settings and skills
  windlass mcp test time              start it, and see what it offers
  windlass mcp test time --pin        accept what it says now
  windlass mcp presets                servers that have a name of their own";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// Laid out by hand, so nothing may wrap it.
    #[test]
    fn examples_fit_eighty_columns() {
        let program = crate::args::Args::command();
        let all = program.get_subcommands().chain([&program]);
        let texts = all.filter_map(|command| command.get_after_help());
        for line in texts
            .map(ToString::to_string)
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
