(class_heritage [(identifier) (member_expression)] @base)
(field_definition value: [(arrow_function) (function_expression)]) @definition
(method_definition (decorator) @decorator)
