//! `hopwise trial` as a shell sees it: its output and files, its resumption, and its refusals.

#[path = "trial/bent.rs"]
mod bent;
#[path = "trial/figures.rs"]
mod figures;
#[path = "trial/folder.rs"]
mod folder;
#[path = "trial/named.rs"]
mod named;
#[path = "trial/outside.rs"]
mod outside;
#[path = "trial/pages.rs"]
mod pages;
#[path = "trial/readme.rs"]
mod readme;
#[path = "trial/refusals.rs"]
mod refusals;
#[path = "trial/reports.rs"]
mod reports;
#[path = "trial/results.rs"]
mod results;
#[path = "trial/tables.rs"]
mod tables;
#[path = "trial/truth.rs"]
mod truth;
