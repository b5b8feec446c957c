//! A person's own directory as the workspace: at its real path, with nothing of ours in it.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use windlass_core::layout::AddedDirectory;
use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::{HomeFiles, Local};

use crate::everyone;
use crate::support::{Place, STRANGER, Who, run};

/// A directory that belongs to whoever owns the workspace.
fn owned(who: Who, path: &Path) -> PathBuf {
    fs::create_dir_all(path).unwrap();
    if who == Who::RootForStranger {
        chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    path.to_owned()
}

fn added(path: &Path, writable: bool) -> AddedDirectory {
    AddedDirectory { path: path.to_str().unwrap().to_owned(), writable }
}

#[test]
fn a_personal_workspace_is_at_its_own_path_and_at_its_alias() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("my work"));
        fs::write(work.join("seen"), "yes").unwrap();
        let local = Local::open(place.personal(&work)).await.unwrap();
        let real = work.to_str().unwrap();
        assert_eq!(run(&local, "pwd; cat seen").await.ok(), format!("{real}\nyes"));
        assert_eq!(run(&local, "cat /workspace/seen").await.ok(), "yes");
        run(&local, &format!("echo new > '{real}/made'; mv '{real}/made' /workspace/moved"))
            .await
            .ok();
        let names = |path: &Path| -> Vec<String> {
            let all = fs::read_dir(path).unwrap().flatten();
            let mut names: Vec<_> =
                all.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&work), ["moved", "seen"]);
        // What lies beside it is not shown.
        fs::write(place.top.path().join("beside"), "no").unwrap();
        run(&local, "cat ../beside").await.fails();
    });
}

#[test]
fn with_landlock_alone_a_personal_workspace_is_at_its_own_path() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("mine"));
        let config = Config { namespaces: Namespaces::Off, ..place.personal(&work) };
        let local = Local::open(config).await.unwrap();
        let real = work.to_str().unwrap();
        assert_eq!(
            run(&local, &format!("echo x > f; cat {real}/f; pwd")).await.ok(),
            format!("x\n{real}\n")
        );
        assert_eq!(fs::read_dir(&work).unwrap().count(), 1);
    });
}

#[test]
fn a_workspace_inside_a_shown_toolchain_can_be_written() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.home.join("go/src/project"));
        fs::write(place.home.join("go/tool"), "tool").unwrap();
        let config = Config { read_only: vec!["go".into()], ..place.personal(&work) };
        let local = Local::open(config).await.unwrap();
        let text = run(&local, "echo made > file; cat file ../../tool").await.ok();
        assert_eq!(text, "made\ntool");
        run(&local, "echo x > ../../tool").await.fails();
        assert_eq!(fs::read_to_string(work.join("file")).unwrap(), "made\n");
    });
}

#[test]
fn added_directories_are_at_their_own_paths() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("mine"));
        let open = owned(who, &place.top.path().join("open"));
        let closed = owned(who, &place.top.path().join("closed"));
        fs::write(closed.join("file"), "kept").unwrap();
        for namespaces in [Namespaces::IfAvailable, Namespaces::Off] {
            let config = Config {
                added: vec![added(&open, true), added(&closed, false)],
                namespaces,
                ..place.personal(&work)
            };
            let local = Local::open(config).await.unwrap();
            let (open, closed) = (open.display(), closed.display());
            run(&local, &format!("echo x > {open}/made")).await.ok();
            assert_eq!(run(&local, &format!("cat {closed}/file")).await.ok(), "kept");
            run(&local, &format!("echo x > {closed}/file")).await.fails();
        }
        assert_eq!(fs::read_to_string(open.join("made")).unwrap(), "x\n");
    });
}

#[test]
fn home_has_the_files_it_was_given() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("mine"));
        for namespaces in [Namespaces::IfAvailable, Namespaces::Off] {
            let given = || vec![(".gitconfig".to_owned(), "[user]\n\tname = Ada\n".to_owned())];
            let home_files = HomeFiles::new(given);
            let config = Config { home_files, namespaces, ..place.personal(&work) };
            let local = Local::open(config).await.unwrap();
            assert_eq!(
                run(&local, "git config user.name; pwd").await.ok(),
                format!("Ada\n{}\n", work.display())
            );
            run(&local, "git config --global user.name Eve").await.ok();
        }
        assert_eq!(fs::read_dir(&place.home).unwrap().count(), 0);
    });
}

#[test]
fn the_files_of_other_tasks_cannot_be_changed_by_commands() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("mine"));
        let other = owned(who, &work.join(".windlass/tasks/task_other"));
        owned(who, &work.join(".windlass/tasks"));
        fs::write(other.join("plan.md"), "theirs").unwrap();
        let config = place.personal(&work);
        let own = format!(".windlass/tasks/{}", config.layout.task().unwrap());
        let local = Local::open(config).await.unwrap();
        assert_eq!(run(&local, "cat .windlass/tasks/task_other/plan.md").await.ok(), "theirs");
        run(&local, "echo mine > .windlass/tasks/task_other/plan.md").await.fails();
        run(&local, "rm -r .windlass/tasks/task_other").await.fails();
        // Its own directory is the one exception, and so it is made beforehand.
        run(&local, &format!("mkdir -p {own}/scratch && echo mine > {own}/scratch/a")).await.ok();
        for text in [
            "mkdir .windlass/tasks/task_new",
            "echo x > .windlass/tasks/.gitignore",
            "mv .windlass/tasks .windlass/moved",
        ] {
            run(&local, text).await.fails();
        }
        // The directory of a task that starts later is closed too.
        owned(who, &work.join(".windlass/tasks/task_later"));
        run(&local, "echo x > .windlass/tasks/task_later/plan.md").await.fails();
    });
}

#[test]
fn a_closed_directory_inside_an_added_one_stays_closed() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let work = owned(who, &place.top.path().join("mine"));
        let git = owned(who, &place.top.path().join("git"));
        let (hooks, refs) = (owned(who, &git.join("hooks")), owned(who, &git.join("refs")));
        for namespaces in [Namespaces::IfAvailable, Namespaces::Off] {
            let config = Config {
                added: vec![added(&git, true), added(&hooks, false)],
                namespaces,
                ..place.personal(&work)
            };
            let local = Local::open(config).await.unwrap();
            run(&local, &format!("echo x > {}/made", refs.display())).await.ok();
            run(&local, &format!("echo x > {}/pre-commit", hooks.display())).await.fails();
            run(&local, &format!("mv {} {}/moved", hooks.display(), git.display())).await.fails();
        }
    });
}
