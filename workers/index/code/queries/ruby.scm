(call) @call
(superclass (_) @base)
(call method: (identifier) @mixin arguments: (argument_list [(constant) (scope_resolution)] @base) (#any-of? @mixin "include" "extend" "prepend"))
[(constant) (scope_resolution)] @type
(assignment left: (identifier) @name right: (call) @from)
(assignment left: (instance_variable) @field right: (call) @from)
((call method: (identifier) @required) @import (#any-of? @required "require" "require_relative" "load"))
[(class) (module) (method) (singleton_method)] @definition
