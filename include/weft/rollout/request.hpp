// rollout/request.hpp — what to generate, for whom, and where it goes. Everything is borrowed and trivially copyable, so that a request can be a setting of a graph.
#pragma once
#include <weft/kernels/sampling.hpp>
#include <weft/model/config.hpp>
#include <weft/rollout/stopping.hpp>

namespace weft::rollout {
template <class T> struct policy {
  model::config const* config;
  accumulator<T> const* rope;  // [at least settings.context, head_dim], from model::fill_rope_table
  T const* weights;            // [model::parameter_count]
};

// Sample s is sample s % group of prompt s / group. Positions at and after its length are zero in every array.
template <class T> struct outputs {
  i32* ids;         // [samples, capacity]
  T* log_probs;     // [samples, capacity]: of the id, over all of the vocabulary, under the policy at its temperature
  T* log_kept;      // [samples, capacity]: log of the mass that the filters kept; log_prob - log_kept is the filtered log-prob
  T* entropies;     // [samples, capacity]: of the distribution that log_probs uses
  i32* lengths;     // [samples]
  finish* reasons;  // [samples]; `running` with length 0 where there is no prompt
  i32 capacity;     // room for a response
};

// One sample, as an observer sees it.
template <class T> struct sample_view {
  size_t sample;      // index among all samples of the call
  i32 prompt, index;  // row of the call's prompts, 0..group-1
  u32 draw;           // the draw number of the prompt
  i32 capacity;
  i32* ids;  // [capacity] each
  T *log_probs, *log_kept, *entropies;
  i32* length;
  finish* reason;
};

// Both calls come from the thread that called generate(), never two at a time. Either may be null.
template <class T> struct observer {
  void* context = nullptr;
  bool (*known)(void* context,
                sample_view<T> const&) = nullptr;  // before the start, once a sample: true if it filled the sample in (from a journal)
  void (*finished)(void* context,
                   sample_view<T> const&) = nullptr;  // once for each sample that was generated here, in the order of finishing
};

template <class T> struct request {
  i32 prompts = 0, group = 1;  // samples of each prompt
  i32 prompt_capacity = 0;
  i32 const* prompt_ids = nullptr;      // [prompts, prompt_capacity]
  i32 const* prompt_lengths = nullptr;  // [prompts]; 0: no prompt here
  u32 const* draws = nullptr;           // [prompts]: the draw number of each, epoch x rows + row
  u64 seed = 0;
  kernels::sampling const* sampling = nullptr;  // [sampling_count]: one for all, one for each prompt, or one for each sample
  i32 sampling_count = 1;
  i32 sampled_ids = 0;            // ids from here on are never drawn (beyond the tokenizer); 0: none are
  i32 const* bias_ids = nullptr;  // [bias_count], each once
  f32 const* bias = nullptr;      // [bias_count]: added to the logits of the draw, not to those of log_probs
  i32 bias_count = 0;
  stopping stop;
  observer<T> watch;
};

struct counters {
  u64 steps = 0;
  u64 started = 0, finished = 0, aborted = 0;  // samples: started = finished + aborted + in flight
  u64 known = 0;                               // samples that the observer filled in
  u64 prefilled = 0, saved = 0;                // tokens of prompts: computed; not computed since another sample had done so
  u64 decoded = 0;                             // tokens of responses
  u64 preemptions = 0, replayed = 0;           // times that running samples lost their pages; tokens computed once more
  u64 busy = 0;                                // sum of running slots over steps
  double mean_busy() const { return steps ? double(busy) / double(steps) : 0; }
};
}  // namespace weft::rollout
