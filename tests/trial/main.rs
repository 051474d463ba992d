//! `hopwise trial` as a shell sees it: its output and files, its resumption, and its refusals.

mod bent;
mod figures;
mod folder;
mod named;
mod outside;
mod pages;
mod readme;
mod refusals;
mod reports;
mod results;
mod tables;
mod truth;
