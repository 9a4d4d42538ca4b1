//! Products that are ready together, as matrix products if they share factors. Each factor is then
//! sent once, however many products it occurs in, and sums of products are direct results.
//!
//! Which factors are shared, and thus the matrices, follows from the program and from public
//! values.

use super::columns::{columns, slices, written};
use super::costs;
use super::node::{Components, Form, Word};
use super::steps::{Local, Step};
use mpc::{Bilinear, Cost, Operand, Protocol, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::rc::Rc;

/// The maximum number of matrix shapes per round: each is a separate operation.
const SHAPES: usize = 16;

/// A step with its index.
pub type Placed<'s> = (usize, &'s Step);

/// A row of factors, by index.
type Row = Vec<usize>;

/// The length of the rows, their number on the left, and on the right.
type Shape = (usize, usize, usize);

/// Sums of products, as one operation. Deliberately without `Debug`: it holds shares.
pub struct Products {
    /// The bilinear map.
    pub map: Bilinear,
    /// The factors on the left.
    pub left: Vec<Components>,
    /// The factors on the right.
    pub right: Vec<Components>,
    /// Whether each factor is multiplied by itself, for elementwise products.
    pub is_square: bool,
    /// The number of products that each step sums up, for elementwise products.
    pub sums: Vec<usize>,
}

/// A matrix of all rows times all columns, with the steps that it computes.
struct Table {
    rows: Vec<usize>,
    columns: Vec<usize>,
    steps: Vec<usize>,
}

impl Products {
    /// Groups steps into operations. Each step sums up products: each need of the first half times
    /// its partner in the second. Returns the operations, each with the indices of its steps.
    pub fn of(
        steps: &[Placed],
        components: &dyn Fn(&(Word, Form)) -> Components,
    ) -> Vec<(Vec<usize>, Self)> {
        let mut factors = Factors::default();
        let sides: Vec<[usize; 2]> = steps
            .iter()
            .map(|(_, step)| {
                let (left, right) = step.needs.split_at(step.needs.len() / 2);
                [left, right].map(|side| factors.row(side))
            })
            .collect();
        let (tables, alone) = factors.tables(&sides);
        let mut shapes: BTreeMap<Shape, Vec<Table>> = BTreeMap::new();
        for table in tables {
            let shape = (
                factors.rows[table.rows[0]].len(),
                table.rows.len(),
                table.columns.len(),
            );
            shapes.entry(shape).or_default().push(table);
        }
        // The shapes that save the least are computed elementwise.
        let saved = |((k, m, n), tables): &(Shape, Vec<Table>)| {
            tables.len() * (k * (2 * m * n - m - n) + (k - 1) * m * n)
        };
        let mut shapes: Vec<(Shape, Vec<Table>)> = shapes.into_iter().collect();
        shapes.sort_by_key(|shape| Reverse(saved(shape)));
        let saving = shapes.iter().filter(|shape| saved(shape) > 0).count();
        let rest = shapes.split_off(saving.min(SHAPES));
        let mut operations = Vec::new();
        let of = |at: &usize| components(&factors.all[*at]);
        for ((k, m, n), tables) in shapes {
            let row = |at: &usize| factors.rows[*at].iter().map(of);
            let left = tables
                .iter()
                .flat_map(|table| table.rows.iter().flat_map(row));
            let mut right = Vec::new();
            for table in &tables {
                let columns: Vec<&Row> =
                    table.columns.iter().map(|at| &factors.rows[*at]).collect();
                right.extend(
                    (0..k).flat_map(|place| columns.iter().map(move |column| column[place])),
                );
            }
            let done = tables.iter().flat_map(|table| &table.steps);
            operations.push((
                done.map(|at| steps[*at].0).collect(),
                Self {
                    map: Bilinear::Matrix {
                        batch: tables.len(),
                        m,
                        k,
                        n,
                    },
                    left: left.collect(),
                    right: right.iter().map(of).collect(),
                    is_square: false,
                    sums: Vec::new(),
                },
            ));
        }
        let rest = rest.into_iter().flat_map(|(_, tables)| tables);
        let mut alone: Vec<usize> = alone
            .into_iter()
            .chain(rest.flat_map(|table| table.steps))
            .collect();
        alone.sort_unstable();
        if !alone.is_empty() {
            let side = |side: usize| {
                let rows = alone.iter().flat_map(|at| &factors.rows[sides[*at][side]]);
                rows.map(of).collect::<Vec<Components>>()
            };
            let (left, right) = (side(0), side(1));
            let sums = alone.iter().map(|at| factors.rows[sides[*at][0]].len());
            let operation = Self {
                map: Bilinear::Elementwise { n: left.len() },
                is_square: alone.iter().all(|at| sides[*at][0] == sides[*at][1]),
                sums: sums.collect(),
                left,
                right,
            };
            operations.push((alone.iter().map(|at| steps[*at].0).collect(), operation));
        }
        operations
    }

    /// Returns the cost of the operation.
    #[must_use]
    pub fn cost(&self, protocol: &dyn Protocol) -> Cost {
        costs::of_products(protocol, &self.map)
    }

    /// Executes the operation. Returns the components of each step's result.
    ///
    /// # Errors
    /// The errors of the network links.
    pub fn carry_out(self, protocol: &mut dyn Protocol) -> Result<Vec<Components>> {
        let [x, y] = [self.left, self.right].map(|side| columns(protocol, &side));
        let (_, _, n) = self.map.lengths();
        let results = written(protocol, n, |protocol, out| {
            let (x, y) = (slices(&x), slices(&y));
            protocol.bilinear(&self.map, Operand::once(&x), Operand::once(&y), None, out)
        })?;
        if self.sums.is_empty() {
            return Ok(results);
        }
        let mut results = results.into_iter();
        let sums = self.sums.into_iter().map(|count| {
            let products = results.by_ref().take(count);
            products.fold(Components::default(), |sum, product| {
                Local::Add.on(&[sum, product])
            })
        });
        Ok(sums.collect())
    }
}

/// Factors, and rows of them, in the order of their occurrence.
#[derive(Default)]
struct Factors {
    all: Vec<(Word, Form)>,
    known: HashMap<(bool, u64), usize>,
    rows: Vec<Row>,
    known_rows: HashMap<Row, usize>,
    /// The number of uses of each row.
    uses: Vec<usize>,
}

impl Factors {
    fn row(&mut self, side: &[(Word, Form)]) -> usize {
        let row: Row = side.iter().map(|need| self.factor(need)).collect();
        let next = self.rows.len();
        let at = *self.known_rows.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            self.uses.push(0);
            next
        });
        self.uses[at] += 1;
        at
    }

    fn factor(&mut self, need: &(Word, Form)) -> usize {
        let key = match &need.0 {
            Word::Public(value) => (true, *value),
            Word::Secret(node) => (false, Rc::as_ptr(node) as usize as u64),
        };
        let next = self.all.len();
        *self.known.entry(key).or_insert_with(|| {
            self.all.push(need.clone());
            next
        })
    }

    /// Returns the tables that save something, and the steps that are in none.
    fn tables(&self, sides: &[[usize; 2]]) -> (Vec<Table>, Vec<usize>) {
        let mut alone = Vec::new();
        // The columns of each row; of the two sides of a step, the one used more often is the row.
        let mut lines: Vec<(usize, BTreeMap<usize, usize>)> = Vec::new();
        let mut known: HashMap<usize, usize> = HashMap::new();
        for (at, &[x, y]) in sides.iter().enumerate() {
            if self.rows[x].len() == 1 && self.uses[x] == 1 && self.uses[y] == 1 {
                alone.push(at);
                continue;
            }
            let (row, column) = if self.uses[y] > self.uses[x] {
                (y, x)
            } else {
                (x, y)
            };
            let line = *known.entry(row).or_insert(lines.len());
            if line == lines.len() {
                lines.push((row, BTreeMap::new()));
            }
            match lines[line].1.entry(column) {
                Entry::Vacant(place) => {
                    place.insert(at);
                }
                // The same product occurs twice.
                Entry::Occupied(_) => alone.push(at),
            }
        }
        let mut tables: Vec<Table> = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        for (row, line) in lines {
            let (columns, steps): (Vec<usize>, Vec<usize>) = line.into_iter().unzip();
            let at = *known.entry(columns).or_insert_with_key(|columns| {
                tables.push(Table {
                    rows: Vec::new(),
                    columns: columns.clone(),
                    steps: Vec::new(),
                });
                tables.len() - 1
            });
            tables[at].rows.push(row);
            tables[at].steps.extend(steps);
        }
        (tables, alone)
    }
}
