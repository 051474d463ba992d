//! Words of files for values of other crates, which know nothing of files.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

/// A value that files write as one of a few words.
pub trait Words: Copy + PartialEq + Sized + 'static {
    /// Name of the choice in the JSON Schema.
    const NAME: &'static str;
    /// Description of the choice.
    const ABOUT: &'static str;
    /// Each word with its value and its description.
    const ALL: &'static [(&'static str, Self, &'static str)] = &[];

    /// The words of [`Words::ALL`], unless a registry has them.
    fn all() -> Vec<(&'static str, Self, &'static str)> {
        Self::ALL.to_vec()
    }
}

/// Writes the words of types: each type has its name in the JSON Schema, and each word its value. The documentation of
/// both is their description there.
///
/// ```text
/// words! {
///     /// Band of the channel.
///     Band as "BandName" {
///         /// Slots of 9 us.
///         "5ghz" => Ghz5,
///     }
/// }
/// ```
macro_rules! words {
    ($(
        $(#[doc = $about:literal])+
        $type:ident as $name:literal { $($(#[doc = $doc:literal])+ $word:literal => $value:ident,)+ }
    )+) => { $(
        impl $crate::words::Words for $type {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = concat!($($about),+).trim_ascii();
            const ALL: &'static [(&'static str, $type, &'static str)] =
                &[$(($word, $type::$value, concat!($($doc),+).trim_ascii())),+];
        }
    )+ };
}
pub(crate) use words;

/// The word for a value; none if files have no word for it.
pub(crate) fn word_for<T: Words>(value: T) -> Option<&'static str> {
    T::all().into_iter().find_map(|(word, of, _)| (of == value).then_some(word))
}

/// A value of another crate as files have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<T>(pub T);

/// The accepted words: `a` or `b`.
struct OneOf<T>(PhantomData<T>);

impl<T: Words> fmt::Display for OneOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = T::all().iter().map(|(word, ..)| format!("`{word}`")).collect();
        f.write_str(&words.join(" or "))
    }
}

impl<T: Words> Visitor<'_> for OneOf<T> {
    type Value = Word<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self, f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word<T>, E> {
        let found = T::all().into_iter().find(|(word, ..)| *word == text);
        found
            .map(|(_, value, _)| Word(value))
            .ok_or_else(|| E::custom(format_args!("unknown variant `{text}`, expected {self}")))
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Word<T>, D::Error> {
        from.deserialize_str(OneOf(PhantomData))
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(
            word_for(self.0).ok_or_else(|| ser::Error::custom("no word of files for this value"))?,
        )
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let each = T::all()
            .into_iter()
            .map(|(word, _, about)| json_schema!({ "const": word, "description": about, "type": "string" }));
        json_schema!({ "description": T::ABOUT, "oneOf": each.collect::<Vec<_>>() })
    }
}

/// One value that files write as a text, or several.
struct OneOrSeveral<T, W>(W, PhantomData<T>);

impl<'de, T: DeserializeOwned, W: fmt::Display> Visitor<'de> for OneOrSeveral<T, W> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(text.into_deserializer()).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, several: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(several))
    }
}

/// Reads one value that files write as a text, or a list of values, each refused at its own place.
pub fn one_or_more<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
    wanted: impl fmt::Display,
) -> Result<Vec<T>, D::Error> {
    from.deserialize_any(OneOrSeveral(wanted, PhantomData))
}

/// A value, or the word `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrOff<T> {
    /// The word.
    Off,
    /// The value.
    On(T),
}

impl<T> OrOff<T> {
    /// The value; none for `off`.
    pub fn on(self) -> Option<T> {
        match self {
            OrOff::On(value) => Some(value),
            OrOff::Off => None,
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OrOff<T>, D::Error> {
        let value = serde_yaml::Value::deserialize(from)?;
        // YAML 1.1 reads `off` as false.
        if value == serde_yaml::Value::Bool(false) || value.as_str() == Some("off") {
            return Ok(OrOff::Off);
        }
        T::deserialize(value).map(OrOff::On).map_err(|error| Error::custom(format_args!("{error}, or off")))
    }
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            OrOff::On(value) => value.serialize(to),
            OrOff::Off => to.serialize_str("off"),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OrOff<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrOff", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [value, { "enum": ["off", false] }] })
    }
}
