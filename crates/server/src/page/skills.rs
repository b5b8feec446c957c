//! The skills that agents and people can use, as their files say now.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_core::shown::{shown, shown_line};

use super::live::{Fragment, PageContent};
use super::view::{PageSources, View};
use super::{markdown, pieces};
use crate::about::Skill;

pub struct SkillsPage;

impl View for SkillsPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let list = (reading.about.skills)();
        let none = list.skills.is_empty();
        let skills = list.skills.iter();
        let cards =
            skills.map(|one| Fragment::new(format!("skill-{}", one.name), card(one))).collect();
        Ok(Some(
            PageContent::new("Skills")
                .with_fragment("problems", html! {
                    @for problem in &list.problems { p.note.warn { span { (shown(problem)) } } }
                    @if none { (pieces::nothing("No skills for work outside of a project", html! { "Those of a project are read when a task works there. Make one with " code { "windlass skills new NAME" } "." })) }
                })
                .with_list("skills", cards),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Skills" } } }
            (live.place("problems"))
            (live.place("skills"))
        }
    }
}

fn card(skill: &Skill) -> Markup {
    let by = match (skill.is_for_agents, skill.is_for_people) {
        (true, true) => "agents and you",
        (true, false) => "agents",
        (false, true) => "you",
        (false, false) => "nobody",
    };
    html! {
        section.card.skill {
            h2 { span { @if skill.is_for_people { "/" } (shown_line(&skill.name)) } span.count { (shown_line(&skill.source)) ", used by " (by) } }
            p dir="auto" { (shown(&skill.description)) }
            details id=(format!("text-{}", skill.name)) { summary { "Instructions" } (markdown::render(&skill.text)) }
        }
    }
}
