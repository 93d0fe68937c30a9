// Runs the kernel on CPU threads: launches come on standard input, rows go back on standard output.
//
// in    columns, lines, words of a row, processors, cores that run, seed; those cores; arguments of each (core,
//       processor), 38 words; the rows of all cores
// out   the rows of all cores
#include "api/dataflow/dataflow_api.h"
#include WALK_SOURCE

#include <thread>

static bool take(void *to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

int main() {
    const uint32_t arguments = 38;
    uint32_t head[6];
    while (take(head, sizeof head)) {
        shim::Chip &chip = shim::chip;
        chip.columns = head[0];
        chip.lines = head[1];
        chip.row_bytes = 4 * head[2];
        std::vector<uint32_t> cores(head[4]), words(head[3] * head[4] * arguments);
        if (!take(cores.data(), 4 * cores.size()) || !take(words.data(), 4 * words.size())) return 71;
        chip.rows.clear();
        for (uint32_t core = 0; core < chip.columns * chip.lines; ++core) {
            void *row = nullptr;
            if (posix_memalign(&row, 64, chip.row_bytes)) return 72;
            chip.rows.push_back((uint8_t *)row);
            if (!take(chip.rows[core], chip.row_bytes)) return 71;
        }
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < head[3] * head[4]; ++i)
            threads.emplace_back([&, i] {
                shim::core = cores[i / head[3]];
                shim::processor = i % head[3];
                shim::state = head[5] + 7919 * i;
                shim::arguments = words.data() + i * arguments;
                kernel_main();
            });
        for (std::thread &thread : threads) thread.join();
        for (uint8_t *row : chip.rows) {
            std::fwrite(row, 1, chip.row_bytes, stdout);
            std::free(row);
        }
        std::fflush(stdout);
    }
}
