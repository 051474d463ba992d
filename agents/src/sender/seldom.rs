//! A value that most flows never have.

/// The value lies on the heap, so that a flow without one pays for a pointer alone. Its place there is kept for the
/// next value: a flow with many losses allocates once.
#[derive(Clone, Debug)]
pub(super) struct Seldom<T>(Option<Box<Option<T>>>);

impl<T> Seldom<T> {
    pub(super) const NONE: Seldom<T> = Seldom(None);

    pub(super) fn set(&mut self, value: Option<T>) {
        match &mut self.0 {
            Some(place) => **place = value,
            None => self.0 = value.map(|value| Box::new(Some(value))),
        }
    }

    pub(super) fn take(&mut self) -> Option<T> {
        self.0.as_mut()?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::Seldom;

    #[test]
    fn what_was_set_last_is_taken_once() {
        let mut seldom = Seldom::NONE;
        assert_eq!(seldom.take(), None);
        seldom.set(None);
        assert!(seldom.0.is_none(), "nothing takes no place");
        seldom.set(Some(1));
        seldom.set(Some(2));
        assert_eq!((seldom.take(), seldom.take()), (Some(2), None));
        seldom.set(Some(3));
        seldom.set(None);
        assert_eq!(seldom.take(), None);
    }
}
