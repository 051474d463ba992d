//! An inventory of Ansible in its YAML form: groups with `hosts`, `children` and `vars`.

use hopwise_lab::located::{Document, Refusal, YamlPath};
use serde_yaml::{Mapping, Value};

use super::ansible::{Groups, Set, Variables};

/// Groups lie no deeper in one another.
const DEEPEST: usize = 50;

const ACCEPTED: &str = "groups such as `all: { hosts: { n1: { ansible_host: 10.0.0.1 } } }`, or a list `hosts` of \
                        ours (`hopwise schema inventory`)";

pub(super) fn read(document: &Document) -> Result<Groups, Box<Refusal>> {
    let mut reader = Reader { document, groups: Groups::default() };
    let root = YamlPath::root();
    let Some(Value::Mapping(top)) = document.value_of(&root) else {
        return Err(document.refuse(&root, "this is no inventory", ACCEPTED));
    };
    if top.contains_key("_meta") {
        let accepted = "what `ansible-inventory --list --yaml` prints";
        return Err(document.refuse_key(&root.key("_meta"), "the list of a program for Ansible", accepted));
    }
    for (name, body) in named(top) {
        reader.group(&root.key(name), name, body, 0)?;
    }
    Ok(reader.groups)
}

struct Reader<'a> {
    document: &'a Document,
    groups: Groups,
}

impl Reader<'_> {
    fn group(&mut self, at: &YamlPath, name: &str, body: &Value, depth: usize) -> Result<(), Box<Refusal>> {
        self.groups.groups.entry(name.to_owned()).or_default();
        if depth > DEEPEST {
            return Err(self.document.refuse(at, "groups lie too deep in one another", "at most 50 of them"));
        }
        for (key, value) in named(&self.mapping(at, body)?) {
            let at = at.key(key);
            match key {
                "hosts" => self.hosts(&at, name, value)?,
                "vars" => {
                    let variables = self.variables(&at, value)?;
                    self.groups.groups.entry(name.to_owned()).or_default().variables.extend(variables);
                }
                "children" => {
                    for (child, body) in named(&self.mapping(&at, value)?) {
                        let line = self.line(&at.key(child));
                        let group = self.groups.groups.entry(name.to_owned()).or_default();
                        group.children.push((child.to_owned(), line));
                        self.group(&at.key(child), child, body, depth + 1)?;
                    }
                }
                other => {
                    self.groups.unknown.insert(other.to_owned());
                }
            }
        }
        Ok(())
    }

    fn hosts(&mut self, at: &YamlPath, group: &str, hosts: &Value) -> Result<(), Box<Refusal>> {
        for (host, variables) in named(&self.mapping(at, hosts)?) {
            let variables = self.variables(&at.key(host), variables)?;
            for name in super::ini::expanded(host).map_err(|problem| {
                self.document.refuse_key(&at.key(host), problem, "a host, or a range of hosts")
            })? {
                self.groups.add(group, &name, variables.clone());
            }
        }
        Ok(())
    }

    fn variables(&self, at: &YamlPath, of: &Value) -> Result<Variables, Box<Refusal>> {
        let set = |(name, value): (&str, &Value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(is_so) => is_so.to_string(),
                Value::Sequence(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                _ => String::new(),
            };
            (name.to_owned(), Set { value, line: self.line(&at.key(name)) })
        };
        Ok(named(&self.mapping(at, of)?).map(set).collect())
    }

    /// An absent value is an empty mapping, as Ansible takes it.
    fn mapping(&self, at: &YamlPath, value: &Value) -> Result<Mapping, Box<Refusal>> {
        match value {
            Value::Null => Ok(Mapping::new()),
            Value::Mapping(of) => Ok(of.clone()),
            _ => Err(self.document.refuse(at, "this is no mapping", ACCEPTED)),
        }
    }

    fn line(&self, at: &YamlPath) -> usize {
        self.document.refuse_key(at, "", "").line()
    }
}

/// The entries whose names are texts, as all of Ansible are.
fn named(of: &Mapping) -> impl Iterator<Item = (&str, &Value)> {
    of.iter().filter_map(|(name, value)| Some((name.as_str()?, value)))
}
