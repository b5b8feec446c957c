//! A Python package with a virtual environment and pytest.

use std::fs;

use crate::machine::{
    again_as_user, by_hand, commit_all, machine, results_of, run_in, status, write,
};

/// Debian's own Python: it is at the same place for everyone, inside and outside.
const VENV: &str = "/usr/bin/python3 -m venv --system-site-packages .venv";

/// A wheel without a network: one module and one program, as `pip` packs them.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("vendor/greet-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("greet.py", "def main():\n    print('hello from', __file__)\n")
    wheel.writestr("greet-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
    wheel.writestr("greet-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("greet-1.0.dist-info/entry_points.txt", "[console_scripts]\ngreet = greet:main\n")
    wheel.writestr("greet-1.0.dist-info/RECORD", "")
"#;

const SCRIPT: &str = "
replies:
  - {task: fix, turn: 0, bash: '. .venv/bin/activate && pytest -q 2>&1'}
  - {task: fix, turn: 1, read: shop/price.py}
  - {task: fix, turn: 2, edit: {path: shop/price.py, old_string: 'amount - 20', new_string: 'amount * 8 // 10'}}
  - {task: fix, turn: 3, bash: '.venv/bin/python -m pytest -q 2>&1'}
  - {task: fix, turn: 4, bash: '.venv/bin/pip install -q --no-index vendor/greet-1.0-py3-none-any.whl && .venv/bin/greet'}
  - {task: fix, turn: 5, save_memo: {filename: found.md, content: the rebate was subtracted}}
  - {task: fix, turn: 6, bash: 'git add -A && git commit -qm \"Take twenty percent off\" && git status --short'}
  - {task: fix, turn: 7, say: The price is right and the tests pass.}
  - {task: approve, turn: 0, read: shop/price.py}
  - {task: approve, turn: 1, edit: {path: shop/price.py, old_string: 'return ', new_string: 'return +'}}
  - {task: approve, turn: 2, say: Done.}
  - {task: approve, turn: 3, edit: {path: shop/price.py, old_string: 'return +', new_string: 'return '}}
  - {task: approve, turn: 4, write: {path: tests/test_zero.py, content: \"from shop.price import rebate\\n\\n\\ndef test_zero():\\n    assert rebate(0) == 0\\n\"}}
  - {task: approve, turn: 5, bash: '.venv/bin/python -m pytest -q 2>&1 | tail -1'}
  - {task: approve, turn: 6, say: The sign is gone and zero is tested.}
";

#[test]
fn a_day_in_a_python_package() {
    let program = machine(SCRIPT);
    let place = program.workspace();
    write(place, "shop/__init__.py", "");
    write(place, "shop/price.py", "def rebate(amount):\n    return amount - 20\n");
    let test =
        "from shop.price import rebate\n\n\ndef test_rebate():\n    assert rebate(50) == 40\n";
    write(place, "tests/test_price.py", test);
    write(place, "conftest.py", "");
    write(place, ".gitignore", ".venv/\n__pycache__/\n.pytest_cache/\n");
    write(place, "vendor/make.py", WHEEL);
    by_hand(&program, place, &format!("{VENV} && .venv/bin/python vendor/make.py"));
    commit_all(&program, place);

    let ran = run_in(&program, place, &["run", "fix the rebate", "--json"]).expect(0);
    let results = results_of(&ran);
    assert!(
        results[0].contains("1 failed") && results[0].contains("test_price.py:5"),
        "{}",
        results[0]
    );
    assert!(results[3].contains("1 passed"), "{}", results[3]);
    // What was installed inside runs outside, and says where it is.
    let real = program.real_workspace();
    assert!(results[4].contains(&format!("hello from {real}/.venv/")), "{}", results[4]);
    assert!(by_hand(&program, place, ".venv/bin/greet").contains(&real));
    assert_eq!(
        by_hand(&program, place, ". .venv/bin/activate && pytest -q | tail -1 | cut -c1-8"),
        "1 passed\n"
    );
    let log = by_hand(&program, place, "git log -1 --format='%an <%ae> %s' --name-only");
    assert_eq!(log, "Ada L <ada@example.org> Take twenty percent off\n\nshop/price.py\n");
    assert_eq!(status(&program, place), "");

    // An approval shows the change, and what is approved happens.
    run_in(&program, place, &["run", "approve the sign", "-q", "--control", "manual"]).expect(3);
    let asked = run_in(&program, place, &["inbox"]).expect(0).stdout;
    let shows = |line: &str| asked.lines().any(|one| one.trim().ends_with(line));
    assert!(
        shows("-    return amount * 8 // 10") && shows("+    return +amount * 8 // 10"),
        "{asked}"
    );
    let task = program.task();
    run_in(&program, place, &["answer", &task, "Allow", "--resume", "-q"]).expect(0);
    let text = fs::read_to_string(place.join("shop/price.py")).unwrap();
    assert!(text.contains("return +amount"), "{text}");
    assert_eq!(status(&program, place), " M shop/price.py\n");

    // A follow-up knows what was done before: the file was read then, so it can be edited now.
    let goal = "take the sign back, and test zero";
    let more = ["run", "--continue", goal, "--json", "--control", "autonomous"];
    let followed = results_of(&run_in(&program, place, &more).expect(0));
    assert!(followed.last().unwrap().starts_with("2 passed"), "{followed:?}");
    assert_eq!(status(&program, place), "?? tests/test_zero.py\n");
    again_as_user(concat!(module_path!(), "::a_day_in_a_python_package"));
}
