//! Standing rules: kept once, listed in order, gone when they are taken back.

use windlass_store::{MAX_STANDING_RULES, NewStandingRule};

use crate::world::{World, at};

fn rule(pattern: &str, directory: Option<&str>) -> NewStandingRule {
    NewStandingRule {
        pattern: pattern.to_owned(),
        directory: directory.map(str::to_owned),
        by: "ada".to_owned(),
    }
}

#[tokio::test]
async fn a_rule_is_kept_once_for_each_place() {
    let world = World::new();
    let store = world.open();
    let rules = store.standing_rules();
    let first = rules.add(at(0), rule("cargo test", None)).await.unwrap();
    assert_eq!(rules.add(at(0), rule("cargo test", None)).await.unwrap(), first);
    rules.add(at(0), rule("cargo test", Some("/project"))).await.unwrap();
    let kept = rules.all().unwrap();
    let places: Vec<_> = kept.iter().map(|rule| rule.directory.as_deref()).collect();
    assert_eq!(places, [None, Some("/project")]);
    assert!(rules.remove(first).await.unwrap());
    assert!(!rules.remove(first).await.unwrap());
    assert_eq!(rules.all().unwrap().len(), 1);
}

#[tokio::test]
async fn there_are_only_so_many_rules() {
    let world = World::new();
    let store = world.open();
    let rules = store.standing_rules();
    for number in 0..MAX_STANDING_RULES {
        rules.add(at(0), rule(&format!("x{number}"), None)).await.unwrap();
    }
    let refused = rules.add(at(0), rule("y", None)).await.unwrap_err();
    assert!(refused.to_string().contains("limit"), "{refused}");
}
