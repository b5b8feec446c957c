//! Work modes that are read-only: nothing with an effect runs, whoever allowed it.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_testkit::{Stage, play_first_request};

/// Attempts to change something, one a line.
const ATTEMPTS: &str = "\
echo x > made.txt
echo x >> a.txt
: > a.txt
cat a.txt > made.txt
tee made.txt < a.txt
touch made.txt
mkdir made
cp a.txt made.txt
mv a.txt made.txt
ln -s a.txt made.txt
rm a.txt
rm -r sub
rm -rf sub
truncate -s 0 a.txt
sed -i s/x/y/ a.txt
dd if=a.txt of=made.txt
ls > made.txt
ls &> made.txt
ls 2> made.txt
exec 3> made.txt
echo x | tee made.txt > /dev/null
find . -fprintf made.txt %p
sort -o made.txt a.txt
awk '{ print > \"made.txt\" }' a.txt
bash -c 'echo x > made.txt'
eval 'echo x > made.txt'
f() { echo x > made.txt; }; f
echo 'echo x > made.txt' | sh
cat <(echo x > made.txt)
echo $(touch made.txt)
./run.sh
bash run.sh
. ./run.sh
python3 -c 'open(\"made.txt\", \"w\")'
python3 make.py
perl -e 'unlink \"a.txt\"'
make
cargo test
cargo build
npm install
git init
git add a.txt
git commit -m x
git push origin main
git stash
curl -o made.txt http://127.0.0.1:1/
curl -d @a.txt http://127.0.0.1:1/
chmod +x run.sh
kill 1
sudo touch made.txt
crontab a.txt
xargs touch < a.txt
find . -name a.txt -exec touch made.txt ;
find . -name a.txt -delete
x='a[$(touch made.txt)]'; echo $((x))
cp /bin/touch made; ./made x
sometool --exec 'touch made.txt'
curl \"http://127.0.0.1:1/$(cat a.txt)\"
patch -p1 < a.txt
tar xf a.txt
git -c core.pager='touch made.txt' log
PAGER='touch made.txt' git log
";

/// The scene's files and what they hold.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in walkdir(directory) {
        let name = entry.strip_prefix(directory).unwrap().display().to_string();
        found.insert(name, std::fs::read_to_string(&entry).unwrap_or_default());
    }
    found
}

fn walkdir(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walkdir(&path) } else { vec![path] }).collect()
}

/// A scene in which a model tries all of it, each beside a look that succeeds.
fn scene(mode: &str) -> String {
    let attempt = |text: &str| {
        let command = serde_json::to_string(text).unwrap();
        format!("  - calls: [{{bash: {command}}}, {{bash: 'head -c {} a.txt'}}]\n", text.len())
    };
    let replies: String = ATTEMPTS.lines().map(attempt).collect();
    format!(
        "goal: look\nmode: {mode}\ncontrol: assisted\nprofile: unrestricted\n\
         rules: [touch, echo, bash, make, cargo test, git, python3, rm, sed, ./run.sh]\n\
         files: {{a.txt: x, sub/b.txt: y, run.sh: 'touch made.txt', make.py: 'open(\"made.txt\", \"w\")'}}\n\
         limits: {{max_iterations: 200}}\nreplies:\n{replies}  - say: seen\n"
    )
}

#[tokio::test]
async fn no_attempt_of_the_corpus_has_an_effect_in_read_only_modes() {
    for mode in ["plan", "review", "research"] {
        let stage = Stage::set(&scene(mode));
        let before = files(&stage.workspace());
        let journal = stage.run().await;
        // A plan is asked about; the others wait for somebody to look at what came of it.
        let ended = if mode == "plan" { "BLOCKED_USER" } else { "PAUSED" };
        assert!(journal.contains(ended), "{journal}");
        let mut after = files(&stage.workspace());
        assert_eq!(after.remove(".proposal.md").is_some(), mode == "plan");
        assert_eq!(after, before, "{mode}");
        let count = |words: &str| journal.lines().filter(|line| line.ends_with(words)).count();
        assert_eq!(count("deny"), ATTEMPTS.lines().count(), "{mode}:\n{journal}");
        assert_eq!(count(" ask"), 0, "{journal}");
    }
}

#[tokio::test]
async fn a_denial_by_a_read_only_mode_says_how_to_leave_it() {
    let script = "
        goal: look
        mode: plan
        control: assisted
        replies:
          - bash: touch made.txt
          - write: {path: made.txt, content: x}
          - update_plan: {steps: [{id: a, description: look, status: done}]}
          - say: seen
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let journal = stage.journal(task);
    assert!(journal.contains("update_plan note allow"), "{journal}");
    let requests = stage.server.requests();
    let sent_text = requests.last().unwrap().json().to_string();
    for words in ["work mode `plan` is read-only", "the work mode to `build`", "creates `made.txt`"]
    {
        assert!(sent_text.contains(words), "{words} is not in {sent_text}");
    }
}

#[tokio::test]
async fn a_sub_agent_works_in_the_read_only_mode_of_its_parent() {
    let script = "
        goal: look
        mode: review
        profile: unrestricted
        match:
          - task: change it
            replies: [{bash: touch made.txt}, {say: it was refused}]
        replies:
          - spawn_agent: {task: change it}
          - spawn_agent: {task: change it, write_output_to: made.txt}
          - say: seen
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let journal = stage.journal(task);
    assert!(journal.contains("spawn_agent delegate allow"), "{journal}");
    assert!(journal.contains("spawn_agent edit deny"), "{journal}");
    assert!(!stage.workspace().join("made.txt").exists());
}

#[tokio::test]
async fn only_the_prompts_of_read_only_modes_say_so() {
    for (mode, is_read_only) in
        [("plan", true), ("review", true), ("research", true), ("build", false), ("repair", false)]
    {
        let script =
            format!("goal: look\nmode: {mode}\ncontrol: assisted\nreplies: [{{say: seen}}]");
        let request = play_first_request(&script).await;
        assert_eq!(request.contains("The mode is read-only"), is_read_only, "{mode}");
        let tools = request.lines().find(|line| line.contains("Your tools, ")).unwrap();
        assert_eq!(!tools.contains("`write`"), is_read_only, "{mode}: {tools}");
    }
}
