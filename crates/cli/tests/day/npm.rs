//! An npm project with a dependency of its own.

use crate::machine::{
    again_as_user, by_hand, commit_all, machine, results_of, run_in, status, write,
};

const SCRIPT: &str = "
replies:
  - {turn: 0, bash: 'npm install --offline --no-audit --no-fund --silent ./vendor/pad && npm test --silent'}
  - {turn: 1, read: index.js}
  - {turn: 2, edit: {path: index.js, old_string: 'text.length', new_string: 'pad(text).length'}}
  - {turn: 3, bash: 'npm test --silent'}
  - {turn: 4, bash: 'git add -A && git commit -qm \"Pad before measuring\" && git status --short'}
  - {turn: 5, bash: 'git push origin main'}
  - {turn: 6, say: Committed; the push was not wanted.}
  - {turn: 7, edit: {path: index.js, old_string: '(text) =>', new_string: '(text = \"\") =>'}}
  - {turn: 8, bash: 'npm test --silent && git commit -qam \"Take no text as empty\" && git log --oneline | wc -l'}
  - {turn: 9, say: Nothing is empty now.}
";

#[test]
fn a_day_in_an_npm_project() {
    let program = machine(SCRIPT);
    // A throwaway directory has a name that no package may have.
    let place = &program.workspace().join("padded");
    std::fs::create_dir(place).unwrap();
    by_hand(
        &program,
        place,
        "npm init --yes >/dev/null && npm pkg set scripts.test='node test.js'",
    );
    write(place, ".gitignore", "node_modules/\n");
    write(
        place,
        "index.js",
        "const pad = require('pad');\nmodule.exports = (text) => text.length;\n",
    );
    let test = "const assert = require('assert');\nassert.equal(require('./index.js')('ab'), 4);\n\
                console.log('ok', process.cwd());\n";
    write(place, "test.js", test);
    write(place, "vendor/pad/package.json", "{\"name\": \"pad\", \"version\": \"1.0.0\"}\n");
    write(place, "vendor/pad/index.js", "module.exports = (text) => ` ${text} `;\n");
    commit_all(&program, place);
    let remote = tempfile::tempdir().unwrap();
    let name = remote.path().display();
    by_hand(&program, place, &format!("git init -q --bare {name}; git remote add origin {name}"));

    let ran = run_in(&program, place, &["run", "pad it, commit and push", "--json"]).expect(3);
    let results = results_of(&ran);
    assert!(results[0].contains("AssertionError"), "{}", results[0]);
    assert_eq!(results[3], format!("ok {}/padded\n", program.real_workspace()));
    let task = program.task();
    run_in(&program, place, &["answer", &task, "Deny: not today", "--resume", "-q"]).expect(0);
    let sent_text = program.server.requests().last().unwrap().json().to_string();
    assert!(sent_text.contains("DENIED") && sent_text.contains("not today"), "{sent_text}");
    assert_eq!(by_hand(&program, place, "git ls-remote origin | wc -l"), "0\n");
    let log = by_hand(&program, place, "git log -1 --format='%an %s' --name-only");
    assert_eq!(log, "Ada L Pad before measuring\n\nindex.js\npackage-lock.json\npackage.json\n");
    assert_eq!(by_hand(&program, place, "npm test --silent | cut -c1-2"), "ok\n");
    assert_eq!(status(&program, place), "");

    let followed = run_in(&program, place, &["send", &task, "take nothing as empty"]).expect(0);
    assert_eq!(followed.stdout, "Nothing is empty now.\n");
    let log = by_hand(&program, place, "git log -1 --format='%an %s' --name-only");
    assert_eq!(log, "Ada L Take no text as empty\n\nindex.js\n");
    assert_eq!(status(&program, place), "");
    again_as_user(concat!(module_path!(), "::a_day_in_an_npm_project"));
}
