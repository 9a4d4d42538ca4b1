// Words from the diagonals of a product of digits: the sum of diagonal s times 2^(8s), mod 2^64.
//
// Columns of the product are pairs (outer, inner), such as an image and a pixel.
//
// Thirds of shared products (crates/kernels/src/third.rs) need halves of sums, each of which is
// rounded for itself. So the first diagonal comes as several sums, of runs of the depth. Their
// lowest bits are those of the runs' whole sums: they say which halves are rounded.

struct recompose {
    const int *sums; // for each item its runs of the first diagonal; then the other diagonals
    word *out;
    integer items, rows, columns;
    integer diagonals, runs;
    integer sums_row; // numbers between rows
    integer columns_inner;
    integer out_item, out_row, out_outer; // words between items, rows, outer indices
    integer summand; // 0: all of it, 1: half of it, rounded down, 2: rounded up, 3: its negative
    integer shift; // by how many bits the word is shifted up
    integer is_added; // whether the words are added to those in place
};

KERNEL recompose(struct recompose p)
{
    const integer at = THREAD;
    if (at >= p.items * p.rows * p.columns) return;
    const integer column = at % p.columns;
    const integer row = at / p.columns % p.rows;
    const integer item = at / (p.columns * p.rows);
    const integer matrix = p.rows * p.sums_row;
    const int *sums = p.sums + row * p.sums_row + column;
    word value = 0, odd = 0;
    for (integer run = 0; run < p.runs; run++) {
        const int sum = sums[(item * p.runs + run) * matrix];
        value += (word)(integer)sum;
        odd += (word)(sum & 1);
    }
    sums += p.items * p.runs * matrix;
    for (integer diagonal = 1; diagonal < p.diagonals; diagonal++) {
        value += (word)(integer)sums[((diagonal - 1) * p.items + item) * matrix] << 8 * diagonal;
    }
    if (p.summand == 1) value = (value - odd) >> 1;
    if (p.summand == 2) value = (value + odd) >> 1;
    if (p.summand == 3) value = 0 - value;
    value <<= p.shift;
    word *to = p.out + item * p.out_item + row * p.out_row +
               column / p.columns_inner * p.out_outer + column % p.columns_inner;
    *to = p.is_added ? *to + value : value;
}
