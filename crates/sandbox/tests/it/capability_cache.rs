//! What the kernel granted is found out once.

use std::fs;
use std::path::PathBuf;

use windlass_sandbox::local::Config;
use windlass_sandbox::{Local, Sandbox};

use crate::everyone;
use crate::support::{Place, run, script};

/// The helper in the data directory.
fn installed(place: &Place) -> PathBuf {
    let entries = fs::read_dir(place.data.join("helper")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("helper-");
    paths.into_iter().find(named).unwrap()
}

#[test]
fn what_the_kernel_allowed_is_remembered_until_circumstances_change() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let report = place.local().await.isolation();
        let helper = installed(&place);
        let bytes = fs::metadata(&helper).unwrap().len();
        // A helper that cannot be started: trying it fails.
        fs::write(&helper, vec![0; bytes as usize]).unwrap();

        let recalled = place.local().await;
        assert_eq!(recalled.isolation(), report);
        assert!(recalled.start(script(&recalled, "true")).await.is_err());
        assert!(Local::open(place.config()).await.is_err(), "it was tried again");

        fs::remove_file(&helper).unwrap();
        let again = place.local().await;
        assert_eq!(run(&again, "echo well").await.ok(), "well\n");
        again.stop().await;
    });
}

#[test]
fn what_is_kept_of_it_may_be_anything() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let report = place.local().await.isolation();
        let kept = place.data.join("helper/granted-proxy");
        let whole = fs::read(&kept).unwrap();
        for broken in [&whole[..0], &whole[..7], &whole[..whole.len() - 1], b"something else"] {
            fs::write(&kept, broken).unwrap();
            assert_eq!(place.local().await.isolation(), report);
            assert_eq!(fs::read(&kept).unwrap().len(), whole.len(), "found out again");
        }
    });
}

/// What is known of the files in shown directories.
fn searched(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.data.join("helper")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_search =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("credentials-");
    paths.filter(is_search).collect()
}

#[test]
fn toolchains_are_searched_for_the_first_command_not_at_the_start() {
    everyone!(|who| async move {
        let place = Place::new(who);
        fs::create_dir_all(place.home.join(".cargo/bin")).unwrap();
        let open = || {
            let read_only = vec![PathBuf::from(".cargo")];
            Local::open(Config { read_only, ..place.config() })
        };
        open().await.unwrap();
        searched(&place).iter().for_each(|file| fs::remove_file(file).unwrap());

        let local = open().await.unwrap();
        assert!(searched(&place).is_empty());
        run(&local, "true").await.ok();
        assert_eq!(searched(&place).len(), 1);
        local.stop().await;
    });
}

#[test]
fn a_start_reports_a_directory_that_is_gone() {
    everyone!(|who| async move {
        let place = Place::new(who);
        place.local().await;
        let skills = Some(place.home.join("no-skills"));
        assert!(Local::open(Config { skills, ..place.config() }).await.is_err());
    });
}
